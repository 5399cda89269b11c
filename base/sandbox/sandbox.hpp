#pragma once
// Runs a program of an image's own file system with that tree as `/`, without root on the host and,
// unless told otherwise, without network.
//
// The sandbox is a single-ID user namespace (plus mount, PID, UTS, IPC and network namespaces)
// entered by re-exec, since a threaded process may not unshare(CLONE_NEWUSER) (unshare(2)). Where
// ownership matters, a seccomp supervisor (seccomp_unotify(2)) answers chown-like calls, keeps the
// owners in a table and shows them back in stat-like calls, so that the program sees a machine
// where it is root although every file belongs to the caller.
//
// Where namespaces are forbidden (a container's default profile) and the caller is root there,
// run_recorded falls back to a plain chroot under the same supervisor.
//
// The result is the same whether the caller is root or not. Nothing of the scaffolding (mount
// points, device nodes) stays in the tree. Needs Linux 5.12.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/overlay.hpp"
#include "base/process.hpp"

namespace mlenv {

struct Owner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  friend bool operator==(const Owner&, const Owner&) = default;
};
/// Path within the root (absolute, `/etc/shadow`) → owner; paths not named are 0:0.
using Owners = std::map<std::string, Owner>;
/// Path within the root → raw value of its `security.capability` attribute (version 2, without a
/// namespace's id; capabilities(7)).
using FileCapabilities = std::map<std::string, std::string>;

struct SandboxMount {
  fs::path source;     ///< on the host
  std::string target;  ///< within the root, absolute; made when absent, and then removed again
  bool read_only = true;
};

struct SandboxCommand {
  fs::path root;  ///< becomes `/`
  bool read_only_root = false;
  std::vector<std::string> argv;  ///< argv[0] absolute within the root
  std::vector<std::string> env;   ///< the whole environment, `K=V`
  std::string folder = "/";
  std::vector<SandboxMount> mounts;
  int stdin_fd = -1;  ///< -1 is /dev/null
  int stdout_fd = 1;
  int stderr_fd = 2;
  std::string hostname = "localhost";
  /// Stacked in the sandbox's own mount namespace and taken as `root`, which is then not read: what
  /// the program changes is in `overlay->folder`/upper afterwards. Needs namespaces.
  std::optional<Overlay> overlay;
  bool network = false;  ///< the host's network as it is
  /// Name → content: files of mode 0400 in `kSecretsFolder`, in memory for as long as it runs.
  std::map<std::string, std::string> secrets;
};

inline constexpr std::string_view kSecretsFolder = "/run/secrets";

/// A program running in the sandbox; the destructor ends it and everything it started. So does the
/// end of this process, however it comes.
class Sandbox {
 public:
  /// Returns when the program has been started; throws `sandbox-failed` (with the refusal's reason
  /// and hint where there is one) or `cannot-start`.
  explicit Sandbox(const SandboxCommand& command);
  std::optional<Exit> wait(std::optional<std::chrono::milliseconds> deadline = std::nullopt) {
    return child_.wait(deadline);
  }

 private:
  Child child_;
};

struct RecordedRun {
  Exit exit;
  Owners owners;                  ///< every path below the root whose owner is not 0:0, at the end
  FileCapabilities capabilities;  ///< file capabilities that the program set, at the end
  std::string output;             ///< stdout and stderr together, as they came; the last 8 MiB
};

/// Runs `command` to its end with ownership recorded: `initial` says who owns what beforehand
/// (paths followed as given, not through links; absent ones do not matter). Descriptors for output
/// in `command` are not used; `output` is told what comes, as it comes. Device nodes and access
/// control lists that the program makes are accepted and dropped; flushing to disk is skipped.
/// Throws `timeout` past the deadline, else as `Sandbox` does.
RecordedRun run_recorded(const SandboxCommand& command, const Owners& initial,
                         std::chrono::milliseconds deadline,
                         const std::function<void(std::string_view)>& output = {});

/// Throws what `run_recorded` would for want of a sandbox, by trying one: for whoever has minutes
/// of work to do before.
void require_sandbox();

/// The second half of the re-exec: main() calls this first, before any thread exists, and returns
/// its value when it is engaged. nullopt: this is an ordinary start.
std::optional<int> sandbox_main(int argc, char** argv);

}  // namespace mlenv
