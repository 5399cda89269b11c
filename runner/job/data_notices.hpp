#pragma once
// What people are told of data on its way to nodes: what takes its time, now and then.
#include <chrono>
#include <cstdint>
#include <string>

namespace mlenv::job {

class NodeLink;

class DataNotice {
 public:
  /// To be called often. Empty: there is nothing to say.
  std::string next(const NodeLink& link, const std::string& node);

 private:
  std::chrono::steady_clock::time_point told_{};
  std::string name_;
};

}  // namespace mlenv::job
