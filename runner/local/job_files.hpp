#pragma once
// Files as the job will see them: the image's, and over them what is mounted.
#include <optional>
#include <string>
#include <vector>

#include "runner/local/bundle.hpp"
#include "runner/local/image_root.hpp"

namespace mlenv {

/// Paths may be relative to the bundle's workdir. Links between image and mounts are followed. What
/// lies on a file system that only the container has cannot be seen from outside.
class JobFiles {
 public:
  /// As they are before anything is mounted at `except`.
  JobFiles(const Bundle& bundle, const ImageRoot& image, const std::string& except = {})
      : bundle_(bundle), image_(image) {
    for (const CdiMount& one : bundle.file_systems) hidden_.push_back(one.path);
    std::erase(hidden_, except);
  }

  /// `found` also for what cannot be seen.
  ImageRoot::Program program(const std::string& path) const;
  /// The first bytes; nullopt where they cannot be read from here.
  std::optional<std::string> head(const std::string& path) const;

  enum class Kind { absent, folder, other, unseen };
  Kind kind(const std::string& path) const;
  /// Where it lies on the host; nullopt when it is the image's or unseen.
  std::optional<fs::path> on_host(const std::string& path) const;
  /// Absolute, every link followed, also where it leads to nothing; nullopt when they lead in a
  /// circle.
  std::optional<std::string> real_path(const std::string& path) const;
  /// The mount that shows a real path; nullptr: the image's, or unseen.
  const Mount* mount_of(const std::string& real) const;

 private:
  std::optional<fs::path> follow(fs::path& real, const fs::path& rest) const;
  std::optional<std::string> link(const std::string& path) const;
  const Mount* mount_over(const std::string& path) const;
  std::optional<fs::path> host_path(const std::string& path) const;
  Fd open_on_host(const std::string& path, int flags) const;
  bool is_hidden(const std::string& path) const;

  const Bundle& bundle_;
  const ImageRoot& image_;
  std::vector<std::string> hidden_ = default_mount_targets();
};

}  // namespace mlenv
