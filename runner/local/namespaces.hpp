#pragma once
// The namespaces around a container: one of mounts (and, for ordinary users, one of users), so that
// the overlay vanishes with us; and one of processes, whose death is the death of all in it.
#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "runner/local/user.hpp"

namespace mlenv {

enum class Identity {
  root,       ///< real root
  mapped,     ///< root of a user namespace that was there already, with several ids
  single_id,  ///< an ordinary user: root of our own user namespace, in which no other id exists
  kept_id,    ///< an ordinary user: shown as somebody else than root (user_map.hpp)
};

/// Moves the calling process, which must have a single thread (unshare(2)), into a mount namespace
/// of its own; an ordinary user gets a user namespace with it, their ids shown as 0:0, or as
/// `shown_as`. Mounts made here are seen by nobody else; the host's are followed. Throws
/// `no-namespace`, and for `shown_as` `no-user-map`, with what to do.
Identity enter_namespaces(const std::optional<ContainerUser>& shown_as = std::nullopt);

/// The first step of that, for a caller that maps ids itself.
void unshare_user_and_mounts();

/// A folder in memory below `scratch` that nobody else sees and that vanishes with us: for what a
/// run needs beside the job's own files. After `enter_namespaces`. Throws `no-namespace`.
fs::path mount_private_folder(const fs::path& scratch);

/// A folder in memory over one that is there; of a size, where `bytes` says one. Throws the same.
void mount_memory(const fs::path& folder, std::optional<std::uint64_t> bytes = std::nullopt);

/// A network namespace with nothing but its loopback, kept by being mounted at `file`, which is
/// made.
void make_network_namespace(const fs::path& file);

/// A PID namespace with an init that reaps orphans and ends when this object or its process does,
/// whatever way: the kernel then kills every process in it (pid_namespaces(7)).
///
/// Who is in the namespace sees the init as /proc/1, so it has nothing to be seen: its root is an
/// empty file system in a namespace of mounts that holds nothing else, it has no capabilities, no
/// descriptor but the end of a pipe, no words and no variables, and nobody may trace it or look
/// into it (`PR_SET_DUMPABLE`, prctl(2)).
class PidNamespace {
 public:
  /// Its init moves to the namespace of networks at `network`, where that is not empty, and goes on
  /// by itself: nobody else may be in the namespace before `settle`. Throws `no-namespace`.
  explicit PidNamespace(const fs::path& network = {});
  PidNamespace(const PidNamespace&) = delete;
  PidNamespace& operator=(const PidNamespace&) = delete;
  ~PidNamespace() { end(); }
  /// Waits until the init has nothing left. Throws `no-namespace`.
  void settle();
  /// From here on, when this process is killed and everything in the namespace is gone, a process
  /// outside it and in this process's other namespaces does what nobody else is left to do; `held`
  /// is a descriptor that stays open until then. Nothing to do: no such process. No exceptions from
  /// `orphaned`.
  void watch_over(const std::function<void()>& orphaned, int held = -1);
  /// What an OCI runtime joins; a path for children of this process too.
  std::string path() const;
  /// The namespace itself (nsfs).
  int fd() const { return space_.get(); }
  /// Its first process, which lives as long as it does.
  pid_t init() const { return init_; }
  /// Kills everything in it.
  void kill() noexcept;
  /// The same, and waits until all of it is gone, though no longer than half a minute: a process
  /// may sleep in the kernel for ever. Idempotent. Reaps every child of this process on the way:
  /// the kernel keeps a namespace until those are reaped, too, that came in from outside.
  void end() noexcept;
  /// Kills everything in it, and waits for nothing any more.
  void leave() noexcept;

 private:
  pid_t init_ = -1;
  pid_t guard_ = -1;  ///< does what is to be done when this process is killed
  pid_t owner_ = -1;  ///< this process
  Fd space_;
  Fd lifeline_;
  Fd lifeline_end_;  ///< what the init waits at
  Fd answer_;        ///< of the init
};

}  // namespace mlenv
