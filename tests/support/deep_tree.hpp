#pragma once
// Trees that no path reaches to the end, and a process that may open little.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <string>

#include "base/files.hpp"

namespace mlenv {

/// As long as it lives the process may open no more.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    constexpr rlim_t kFew = 64;
    const rlimit few{kFew, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// `top`, and in it folders in one another, all called `part`; an empty `file` in each but the
/// last.
inline void make_deep_tree(const fs::path& top, int levels, const std::string& part = "d") {
  make_folders(top);
  Fd folder = open_file(top, O_RDONLY | O_DIRECTORY);
  for (int level = 0; level < levels; ++level) {
    const Fd file{::openat(folder.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_TRUE(file);
    ASSERT_EQ(::mkdirat(folder.get(), part.c_str(), 0700), 0);
    folder = Fd{::openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    ASSERT_TRUE(folder);
  }
}

}  // namespace mlenv
