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
  /// `words`: what work_main is to do; the request that it is part of comes first.
  Work(std::string during, std::vector<std::string> words);

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

/// Its process: `image STORE DIGEST NAME…` (publishes the image, whose manifest, config and layers
/// are there, unpacks it, and gives it those names; answers with the digest that it computed of the
/// manifest), `code STORE DIGEST FOLDER` (the same of an archive), `facts STORE`. nullopt: this is
/// an ordinary start.
std::optional<int> work_main(int argc, char** argv);

}  // namespace mlenv::job
