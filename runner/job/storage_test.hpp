#pragma once
// What a controller asks the nodes of a job about shared storage (docs/storage.md), and what they
// answer: JSON on a line, carried by TestStorage and StorageTested (messages.hpp).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::job {

/// A place in storage that has a name, as a job mounts it.
struct StorageUse {
  std::string name;
  std::string path;     ///< absolute, the same on all nodes
  bool writes = false;  ///< a mount of it is not read-only
  friend bool operator==(const StorageUse&, const StorageUse&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("path", self.path);
    visit("writes", self.writes);
  }
};

inline constexpr std::string_view kStorageLook = "look";
inline constexpr std::string_view kStorageLeave = "leave";
inline constexpr std::string_view kStorageFind = "find";
inline constexpr std::string_view kStorageRemove = "remove";

/// `look`: is each place there, can it be read, and written where it is to be? `leave`: a file of
/// the name `marker` in each; it goes with `remove`, or with whoever left it. `find`: is it there,
/// looking again for `wait_ms` where that can help, and no more once something else is asked?
/// `remove`: it goes, whoever left it; a problem where it does not.
struct StorageRequest {
  std::string what;
  std::uint64_t round = 0;  ///< a number of its own, which the answer has
  std::vector<StorageUse> places;
  std::string marker;
  std::uint64_t wait_ms = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("what", self.what);
    visit("round", self.round);
    visit("places", self.places);
    visit("marker", self.marker);
    visit("wait_ms", self.wait_ms);
  }
};

// What is amiss with a place.
inline constexpr std::string_view kStorageAbsent = "absent";
inline constexpr std::string_view kStorageUnread = "unread";        ///< it cannot be read
inline constexpr std::string_view kStorageUnwritten = "unwritten";  ///< it cannot be written
inline constexpr std::string_view kStorageForbidden = "forbidden";  ///< it may not be written
inline constexpr std::string_view kStorageFull = "full";            ///< not even an empty file

/// One place, as a node sees it.
struct StorageSight {
  std::string problem;    ///< one of the above; empty: nothing is amiss
  std::string said;       ///< the kernel's words about that
  bool seen = false;      ///< of `find`: the marker is there
  std::string type;       ///< of its file system: `nfs`, `ext`; a number where it has no name here
  bool own_disk = false;  ///< a type that lies on a disk, or in the memory, of one machine
  std::uint64_t device = 0;  ///< stat(2) has these three
  std::uint64_t inode = 0;
  std::uint64_t changed_ns = 0;  ///< when its inode last changed, nanoseconds since 1970
  friend bool operator==(const StorageSight&, const StorageSight&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("problem", self.problem);
    visit("said", self.said);
    visit("seen", self.seen);
    visit("type", self.type);
    visit("own_disk", self.own_disk);
    visit("device", self.device);
    visit("inode", self.inode);
    visit("changed_ns", self.changed_ns);
  }
};

struct StorageAnswer {
  std::string what;
  std::uint64_t round = 0;
  std::vector<StorageSight> sights;  ///< one for each place that was asked about
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("what", self.what);
    visit("round", self.round);
    visit("sights", self.sights);
  }
};

/// On one line, without the newline.
std::string render_storage_request(const StorageRequest& request);
std::string render_storage_answer(const StorageAnswer& answer);
/// Throw `bad-stream` for what is none.
StorageRequest parse_storage_request(std::string_view text);
StorageAnswer parse_storage_answer(std::string_view text);

}  // namespace mlenv::job
