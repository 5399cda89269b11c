#pragma once
// Programs that speak (or fail at) the protocol of docker-credential-helpers, found on PATH for as
// long as the object lives.
#include <cstdlib>
#include <string>

#include "base/files.hpp"

namespace mlenv::test {

class HelperPrograms {
 public:
  HelperPrograms() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread of a test asks
    if (const char* const path = std::getenv("PATH")) before_ = path;
    set_path(folder_.path().string() + ":" + before_);
  }
  ~HelperPrograms() { set_path(before_); }
  HelperPrograms(const HelperPrograms&) = delete;
  HelperPrograms& operator=(const HelperPrograms&) = delete;

  /// `docker-credential-NAME`, a shell script: `$1` is the verb, `$server` what came on its input.
  void add(const std::string& name, const std::string& body) {
    const fs::path path = folder_.path() / ("docker-credential-" + name);
    write_file(
        path, "#!/bin/sh\nserver=$(cat)\necho \"$1 $server\" >>'" + calls().string() + "'\n" + body,
        false);
    fs::permissions(path, fs::perms::owner_all);
  }
  /// One that has a login for `server` alone.
  void add_login(const std::string& name, const std::string& server, const std::string& user,
                 const std::string& secret) {
    add(name, "if [ \"$1 $server\" = 'get " + server + "' ]; then\n  echo '{\"ServerURL\":\"" +
                  server + "\",\"Username\":\"" + user + "\",\"Secret\":\"" + secret +
                  "\"}'\nelse\n  echo 'credentials not found in native keychain'\n  exit 1\nfi\n");
  }
  /// A line for each time that one ran: `get host`.
  std::string log() const { return read_file_if_exists(calls()).value_or(""); }

 private:
  fs::path calls() const { return folder_.path() / "calls"; }
  static void set_path(const std::string& path) {
    ::setenv("PATH", path.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): as above
  }
  TemporaryFolder folder_{temporary_root()};
  std::string before_;
};

}  // namespace mlenv::test
