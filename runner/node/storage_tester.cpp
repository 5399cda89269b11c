#include "runner/node/storage_tester.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/error.hpp"
#include "base/files.hpp"
#include "runner/job/storage_test.hpp"

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kOwnFiles = ".mlenv-storage-";

/// Types of file systems (statfs(2), linux/magic.h), and whether one lies on a disk, or in the
/// memory, of one machine.
struct Type {
  std::uint64_t magic;
  const char* name;
  bool own;
};
constexpr std::array kTypes = {
    Type{0x6969, "nfs", false},         Type{0x0bd00bd0, "lustre", false},
    Type{0x00c36400, "ceph", false},    Type{0x47504653, "gpfs", false},
    Type{0x19830326, "beegfs", false},  Type{0xff534d42, "cifs", false},
    Type{0xfe534d42, "smb2", false},    Type{0x65735546, "fuse", false},
    Type{0x01021997, "9p", false},      Type{0x01161970, "gfs2", false},
    Type{0x7461636f, "ocfs2", false},   Type{0xef53, "ext", true},
    Type{0x58465342, "xfs", true},      Type{0x9123683e, "btrfs", true},
    Type{0x01021994, "tmpfs", true},    Type{0x858458f6, "ramfs", true},
    Type{0x794c7630, "overlay", true},  Type{0x2fc12fc1, "zfs", true},
    Type{0xf2f52010, "f2fs", true},     Type{0xca451a4e, "bcachefs", true},
    Type{0x73717368, "squashfs", true}, Type{0x4d44, "vfat", true}};

bool leads_to_folder(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Of a file that is mounted, the one that it lies in.
fs::path storage_folder(const StorageUse& place) {
  const fs::path path = place.path;
  return leads_to_folder(path) ? path : path.parent_path();
}

/// 0, or errno.
int make_empty(const fs::path& path) {
  constexpr mode_t kMode = 0644;
  const Fd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode)};
  return fd ? 0 : errno;
}

void set_problem(StorageSight& sight, std::string_view problem, int error) {
  sight.problem = problem;
  sight.said = errno_text(error);
}

/// Of what cannot be made there.
std::string_view why_unwritten(int error) {
  if (error == EACCES || error == EPERM) return kStorageForbidden;
  if (error == ENOSPC || error == EDQUOT) return kStorageFull;
  return kStorageUnwritten;
}

void tell_type(const fs::path& path, StorageSight& sight) {
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return;
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  const auto* const known = std::find_if(kTypes.begin(), kTypes.end(),
                                         [&](const Type& one) { return one.magic == magic; });
  sight.type = known != kTypes.end() ? known->name : fmt::format("type {:#x}", magic);
  sight.own_disk = known != kTypes.end() && known->own;
}

/// 0, or errno: also what a network's file system knows only once it is asked for a first name.
int try_to_read(const fs::path& path) {
  if (!leads_to_folder(path)) return ::access(path.c_str(), R_OK) == 0 ? 0 : errno;
  std::error_code error;
  const fs::directory_iterator names(path, error);
  return error.value();
}

void look_at_storage(const StorageUse& place, const std::string& own_file, StorageSight& sight) {
  constexpr std::uint64_t kNano = 1'000'000'000;
  struct stat status {};
  tell_type(place.path, sight);  // statfs(2) has an automounter mount it, which stat(2) has not
  if (::stat(place.path.c_str(), &status) != 0) {
    return set_problem(sight, errno == EACCES ? kStorageUnread : kStorageAbsent, errno);
  }
  sight.device = status.st_dev;
  sight.inode = status.st_ino;
  sight.changed_ns = static_cast<std::uint64_t>(status.st_ctim.tv_sec) * kNano +
                     static_cast<std::uint64_t>(status.st_ctim.tv_nsec);
  if (const int error = try_to_read(place.path); error != 0) {
    return set_problem(sight, kStorageUnread, error);
  }
  if (!place.writes) return;
  const fs::path probe = storage_folder(place) / own_file;
  if (const int error = make_empty(probe); error != 0) {
    return set_problem(sight, why_unwritten(error), error);
  }
  ::unlink(probe.c_str());
}

/// What testers left there that were cut off with their machines: older by an hour than `marker`,
/// by the file system's own clock.
void sweep_own_files(const fs::path& folder, const fs::path& marker) {
  constexpr int kMost = 10'000;  // names are looked at: nobody waits for a folder of millions
  constexpr std::int64_t kHour = 3600;
  struct stat now {};
  if (::stat(marker.c_str(), &now) != 0) return;
  std::error_code error;
  fs::directory_iterator names(folder, error);
  for (int i = 0; i < kMost && !error && names != fs::directory_iterator(); ++i) {
    const fs::path path = names->path();
    names.increment(error);
    if (!path.filename().native().starts_with(kOwnFiles)) continue;
    struct stat then {};
    if (::lstat(path.c_str(), &then) != 0 || !S_ISREG(then.st_mode) || then.st_size != 0) continue;
    if (now.st_mtim.tv_sec - then.st_mtim.tv_sec > kHour) ::unlink(path.c_str());
  }
}

class StorageTestServer {
 public:
  StorageTestServer() = default;
  StorageTestServer(const StorageTestServer&) = delete;
  StorageTestServer& operator=(const StorageTestServer&) = delete;
  ~StorageTestServer() { take_back(); }

  void serve() {
    std::string bytes;
    while (read_more(STDIN_FILENO, bytes)) {
      const std::vector<std::string> lines = take_lines(bytes);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        more_asked_ = i + 1 < lines.size();
        const StorageAnswer answer = answer_to(parse_storage_request(lines[i]));
        const std::string text = render_storage_answer(answer) + "\n";
        if (write_quietly(STDOUT_FILENO, text) < 0) return;
      }
    }
  }

 private:
  StorageAnswer answer_to(const StorageRequest& request) {
    StorageAnswer answer;
    answer.what = request.what;
    answer.round = request.round;
    answer.sights.resize(request.places.size());
    if (request.what == kStorageLook) {
      const std::string own = std::string(kOwnFiles) + "look-" + std::to_string(::getpid()) + "-" +
                              std::to_string(steady_clock::now().time_since_epoch().count());
      for (std::size_t i = 0; i < request.places.size(); ++i) {
        look_at_storage(request.places[i], own, answer.sights[i]);
      }
    } else if (!is_marker(request.marker)) {
      return answer;
    } else if (request.what == kStorageLeave) {
      leave(request, answer);
    } else if (request.what == kStorageFind) {
      find(request, answer);
    } else if (request.what == kStorageRemove) {
      remove(request, answer);
    }
    return answer;
  }

  static bool is_marker(const std::string& name) {
    return name.starts_with(kOwnFiles) && name.find('/') == std::string::npos;
  }

  void leave(const StorageRequest& request, StorageAnswer& answer) {
    for (std::size_t i = 0; i < request.places.size(); ++i) {
      if (!request.places[i].writes) continue;
      const fs::path folder = storage_folder(request.places[i]);
      const fs::path path = folder / request.marker;
      if (std::find(left_.begin(), left_.end(), path) != left_.end()) continue;
      left_.push_back(path);
      if (const int error = make_empty(path); error != 0) {
        set_problem(answer.sights[i], why_unwritten(error), error);
        return take_back();
      }
      sweep_own_files(folder, path);
    }
  }

  /// A file system of a network may take a while to see what another machine made.
  void find(const StorageRequest& request, StorageAnswer& answer) const {
    constexpr milliseconds kBetween{200};
    const auto until = steady_clock::now() + milliseconds(request.wait_ms);
    while (true) {
      bool again = false;
      for (std::size_t i = 0; i < request.places.size(); ++i) {
        StorageSight& sight = answer.sights[i];
        if (!request.places[i].writes || sight.seen) continue;
        const fs::path folder = storage_folder(request.places[i]);
        if (sight.type.empty()) tell_type(folder, sight);
        (void)try_to_read(folder);  // it asks its server anew then
        struct stat status {};
        sight.seen = ::lstat((folder / request.marker).c_str(), &status) == 0;
        again = again || (!sight.seen && !sight.own_disk);
      }
      if (!again || more_asked_ || steady_clock::now() >= until) return;
      pollfd more{STDIN_FILENO, POLLIN, 0};  // nobody waits for this any longer
      if (::poll(&more, 1, static_cast<int>(kBetween.count())) > 0) return;
    }
  }

  void remove(const StorageRequest& request, StorageAnswer& answer) {
    for (std::size_t i = 0; i < request.places.size(); ++i) {
      if (!request.places[i].writes) continue;
      const fs::path path = storage_folder(request.places[i]) / request.marker;
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
        set_problem(answer.sights[i], why_unwritten(errno), errno);
      } else {
        std::erase(left_, path);
      }
    }
  }

  void take_back() {
    for (const fs::path& path : std::exchange(left_, {})) ::unlink(path.c_str());
  }

  std::vector<fs::path> left_;
  bool more_asked_ = false;  ///< after what is answered now
};

}  // namespace

StorageTester::~StorageTester() {
  constexpr milliseconds kMoment{2000};
  let_go(kMoment);
}

void serve_storage_tests() {
  // It ends with its standard input, and takes away first what it left: whatever ends the agent.
  ::prctl(PR_SET_PDEATHSIG, 0);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) (void)std::signal(number, SIG_IGN);
  StorageTestServer{}.serve();
}

}  // namespace mlenv::job
