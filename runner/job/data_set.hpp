#pragma once
// Data that a recipe declares, on the nodes of a job (docs/jobs.md, "Data"). A node has it where
// the recipe says, with the declared digest; or in its store, from an earlier job; or it is sent
// there from here, where the recipe has `stage: node`.
#include <cstdint>
#include <string>

namespace mlenv::job {

/// As nodes are told of it.
struct DataSet {
  std::string name;
  std::string digest;  ///< recipes/data_digest.hpp
  std::string from;    ///< absolute: where it lies here, and where nodes look for it
  std::string to;      ///< where ranks see it
  bool stage = false;  ///< a node that lacks it is sent it
  // Of what can be sent from here, else empty:
  std::string list{};  ///< digest of the blob that lists its files (recipes/data_list.hpp)
  std::uint64_t list_bytes = 0;
  std::uint64_t bytes = 0;  ///< of all files
  friend bool operator==(const DataSet&, const DataSet&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("digest", self.digest);
    visit("from", self.from);
    visit("to", self.to);
    visit("stage", self.stage);
    visit("list", self.list);
    visit("list_bytes", self.list_bytes);
    visit("bytes", self.bytes);
  }
};

/// Where a node has it, proven against its digest.
struct DataPlace {
  std::string name;
  std::string digest;
  std::string how;          ///< `found` at its path, `kept` by an earlier job, `staged` for this
  std::string path;         ///< on the node
  std::uint64_t bytes = 0;  ///< of all files
  std::uint64_t sent = 0;   ///< bytes that came for this job
  double seconds = 0;       ///< that it took
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("digest", self.digest);
    visit("how", self.how);
    visit("path", self.path);
    visit("bytes", self.bytes);
    visit("sent", self.sent);
    visit("seconds", self.seconds);
  }
};

}  // namespace mlenv::job
