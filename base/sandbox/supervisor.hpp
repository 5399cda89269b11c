#pragma once
// Answers the calls that the filter stops (seccomp_unotify(2)). One thread, one call at a time: the
// table of owners needs no lock, and the program sees its own changes at once.
#include <cstdint>
#include <vector>

#include <linux/seccomp.h>

#include "base/handle.hpp"
#include "base/sandbox/filter.hpp"
#include "base/sandbox/ownership.hpp"
#include "base/sandbox/tracee.hpp"

namespace mlenv::sandbox {

class Supervisor {
 public:
  /// `proc` is /proc of the program's process namespace. The calling process must have the
  /// program's root as its own root.
  Supervisor(Fd listener, int proc, Ownership& ownership);

  int listener() const { return listener_.get(); }
  /// Takes one call and answers it; a call whose process has gone meanwhile is passed over.
  void serve();

 private:
  struct Answer {
    int error = 0;
    std::int64_t value = 0;
    bool proceed = false;  ///< the kernel carries the call out
  };

  static Answer fail(int error) { return {error, 0, false}; }
  static Answer proceed() { return {0, 0, true}; }

  Answer answer(const Tracee& tracee, Call call);
  Answer change_owner(const Tracee& tracee, Call call);
  Answer show_status(const Tracee& tracee, Call call);
  Answer show_statx(const Tracee& tracee);
  Answer set_attribute(const Tracee& tracee, Call call);
  Answer set_access_list(const Tracee& tracee, Call call, bool of_new_files);
  Answer set_capability(const Tracee& tracee, Call call);
  Answer get_attribute(const Tracee& tracee, Call call);
  Answer remove_attribute(const Tracee& tracee, Call call);
  bool follow_root(const Tracee& tracee);
  int locate_attribute(const Tracee& tracee, Call call, Place& place);

  Fd listener_;
  int proc_;
  Ownership& ownership_;
  std::vector<Call> calls_;
  std::vector<std::byte> received_;  // as large as this kernel says, which may be more than we know
  std::vector<std::byte> response_;
  bool roots_differ_ = false;  // some process has used chroot(2)
  FileId root_;
};

}  // namespace mlenv::sandbox
