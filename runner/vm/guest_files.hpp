#pragma once
// What a guest may leave in folders that it shares with this machine: no file that makes whoever
// runs it somebody else, and no device. QEMU makes the guest's files with the rights that it has
// here, so they are taken from it.

namespace mlenv {

/// From here on neither this process nor what it starts can make set-user-ID files or devices
/// (EPERM), and what it starts has no right to give files capabilities. Throws `no-namespace`.
void forbid_privileged_files();

/// While it lives, and this process is the machine's root, what is started is in no group that
/// counts: without CAP_FSETID the kernel then leaves set-group-ID out of a mode (chmod(2)). Modes
/// are what the guest says, whatever the umask is.
class StartedWithoutGroups {
 public:
  StartedWithoutGroups();
  StartedWithoutGroups(const StartedWithoutGroups&) = delete;
  StartedWithoutGroups& operator=(const StartedWithoutGroups&) = delete;
  ~StartedWithoutGroups();

 private:
  bool is_root_ = false;
  unsigned umask_ = 0;
};

}  // namespace mlenv
