#pragma once
// What takes an agent too long to do between two beats: in a process of its own, which ends with
// it.
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"

namespace mlenv::job {

class Work {
 public:
  /// `words`: what work_main is to do; the request that it is part of comes first. What it makes
  /// for a moment it makes in `temporary`, which its owner removes: it may be killed at any time.
  /// Empty: where anybody does.
  Work(std::string during, const std::vector<std::string>& words, const fs::path& temporary = {});

  const std::string& during() const { return during_; }
  int fd() const { return answer_.get(); }  ///< readable: `hear`
  /// False: it is over.
  bool hear();
  /// Of one that is over. Throws what it threw.
  std::string answer();

 private:
  std::string during_;
  Fd answer_;
  std::optional<Child> child_;
  std::string bytes_;
};

/// The command that starts this program again to do that, for as long as this process lives.
std::vector<std::string> work_command(const std::vector<std::string>& words);

/// Its process: `image STORE DIGEST NAME…` (publishes the image, whose manifest, config and layers
/// are there, unpacks it, and gives it those names; answers with the digest that it computed of the
/// manifest), `code STORE DIGEST FOLDER` (the same of an archive), `facts STORE TEMPORARY` (of the
/// machine, whose folder for temporary files that is), `data …` (data_work.hpp), `links`
/// (link_tester.hpp), `storage` (storage_tester.hpp). nullopt: this is an ordinary start.
std::optional<int> work_main(int argc, char** argv);

}  // namespace mlenv::job
