#include "runner/vm/guest/places.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "runner/vm/frames.hpp"
#include "runner/vm/guest/network.hpp"
#include "runner/vm/setup.hpp"

namespace mlenv::vm {
namespace {

constexpr const char* kDisk = "/dev/vda";
constexpr const char* kScratch = "/dev/vdb";
constexpr const char* kRoot = "/root";
constexpr const char* kShares = "/shares";
constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV;
constexpr unsigned long kQuiet = MS_NOSUID | MS_NOEXEC | MS_NODEV;

struct Memory {
  std::string target;
  std::string options;
};
struct Share {
  std::string target;
  bool is_folder = true;
  bool read_only = false;
  int mount = -1;  ///< detached (open_tree(2))
};
struct Setup {
  std::string host_name = "mlenv";
  std::string shm = "50%";
  std::string writable;  ///< in an image that cannot be written
  std::string time;
  bool has_network = false;
  std::vector<Memory> memory;
  std::vector<Share> shares;
};

/// What went wrong, in words; empty: nothing.
using Problem = std::string;

std::string writable_folder;  // NOLINT: of the setup, until the image is sealed
int shares_root = -1;         // NOLINT: open as long as this machine lives

Problem problem(const std::string& what) {
  const int error = errno;
  return what + ": " + ::strerrordesc_np(error);
}

class Texts {
 public:
  explicit Texts(std::string_view all) : all_(all) {}
  bool at_end() const { return all_.empty(); }
  std::string next() {
    const std::size_t end = all_.find('\0');
    std::string text{all_.substr(0, end)};
    all_.remove_prefix(end == std::string_view::npos ? all_.size() : end + 1);
    return text;
  }

 private:
  std::string_view all_;
};

Problem read_setup(std::string_view text, Setup& setup) {
  for (Texts texts{text}; !texts.at_end();) {
    const std::string word = texts.next();
    if (word == kHostName) {
      setup.host_name = texts.next();
    } else if (word == kTime) {
      setup.time = texts.next();
    } else if (word == kNetwork) {
      setup.has_network = true;
    } else if (word == kShm) {
      setup.shm = texts.next();
    } else if (word == kReadOnly) {
      setup.writable = texts.next();
    } else if (word == kMemory) {
      std::string target = texts.next();
      setup.memory.push_back({std::move(target), texts.next()});
    } else if (word == kShare) {
      const std::string number = texts.next();
      Share share;
      share.target = texts.next();
      share.is_folder = texts.next() == "folder";
      share.read_only = texts.next() == "ro";
      // NOLINTNEXTLINE(cert-err34-c,bugprone-unchecked-*): mlenv's own number
      share.mount = std::atoi(number.c_str());
      setup.shares.push_back(std::move(share));
    } else {
      return "the guest does not know the word `" + word + "`";
    }
  }
  return {};
}

/// With those above it; what is there stays.
int make_folders(const std::string& path) {
  for (std::size_t slash = 0; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    if (::mkdir(path.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) return -1;
  }
  return 0;
}

Problem mount_at(const char* source, const char* target, const char* type, unsigned long flags,
                 const char* options) {
  if (make_folders(target) == 0 && ::mount(source, target, type, flags, options) == 0) return {};
  return problem(std::string("cannot mount ") + type + " at `" + target + "`");
}

void wait_for(const char* path) {
  constexpr int kTries = 2000;
  constexpr int kPause = 5;  // milliseconds
  for (int tries = 0; tries < kTries && ::access(path, F_OK) != 0; ++tries) {
    ::poll(nullptr, 0, kPause);
  }
}

/// The image's disk, which cannot be written, below one that is thrown away.
Problem mount_image() {
  wait_for(kDisk);
  if (Problem why = mount_at(kDisk, "/image", "ext4", MS_RDONLY, "noload"); !why.empty())
    return why;
  wait_for(kScratch);
  // All zeros: its tables need not be cleared. What is removed is to take no room of the host's.
  if (Problem why = mount_at(kScratch, "/layer", "ext4", 0, "noinit_itable,discard");
      !why.empty()) {
    return why;
  }
  (void)::mkdir("/layer/upper", 0755);
  (void)::mkdir("/layer/work", 0755);
  struct stat status {};
  if (::stat("/image", &status) == 0) {
    (void)::chmod("/layer/upper", status.st_mode & 07777U);
    (void)::chown("/layer/upper", status.st_uid, status.st_gid);
  }
  return mount_at("overlay", kRoot, "overlay", 0,
                  "lowerdir=/image,upperdir=/layer/upper,workdir=/layer/work");
}

/// All of them are one; each is taken out of it before that is out of sight.
Problem take_shares(Setup& setup) {
  if (setup.shares.empty()) return {};
  if (Problem why = mount_at(kShareTag, kShares, "9p", 0,
                             "trans=virtio,version=9p2000.L,msize=512000,cache=mmap");
      !why.empty()) {
    return why;
  }
  shares_root = ::open(kShares, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (Share& share : setup.shares) {
    const std::string path = std::string(kShares) + "/" + std::to_string(share.mount);
    share.mount = static_cast<int>(
        ::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | O_CLOEXEC));
    if (share.mount < 0) return problem("cannot open what is shared as `" + share.target + "`");
  }
  return {};
}

struct Node {
  const char* name;
  unsigned major;
  unsigned minor;
};

/// As a container has them: nothing of the machine itself.
Problem make_devices(const Setup& setup) {
  if (Problem why = mount_at("dev", "/dev", "tmpfs", MS_NOSUID, "mode=0755,size=64m");
      !why.empty()) {
    return why;
  }
  constexpr std::array<Node, 6> kNodes{{{"/dev/null", 1, 3},
                                        {"/dev/zero", 1, 5},
                                        {"/dev/full", 1, 7},
                                        {"/dev/random", 1, 8},
                                        {"/dev/urandom", 1, 9},
                                        {"/dev/tty", 5, 0}}};
  for (const Node& node : kNodes) {
    (void)::mknod(node.name, S_IFCHR | 0666, ::makedev(node.major, node.minor));
    (void)::chmod(node.name, 0666);
  }
  (void)::symlink("/proc/self/fd", "/dev/fd");
  (void)::symlink("/proc/self/fd/0", "/dev/stdin");
  (void)::symlink("/proc/self/fd/1", "/dev/stdout");
  (void)::symlink("/proc/self/fd/2", "/dev/stderr");
  (void)::symlink("pts/ptmx", "/dev/ptmx");
  const std::string shm = "mode=1777,size=" + setup.shm;
  for (Problem why : {mount_at("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                               "ptmxmode=0666,mode=0620,gid=5"),
                      mount_at("shm", "/dev/shm", "tmpfs", kQuiet, shm.c_str()),
                      mount_at("mqueue", "/dev/mqueue", "mqueue", kQuiet, nullptr)}) {
    if (!why.empty()) return why;
  }
  return {};
}

struct Flag {
  std::string_view word;
  unsigned long set;
  unsigned long cleared;
};

/// Options of mount(8) as mount(2) has them: flags apart.
std::string data_of(const std::string& options, unsigned long& flags) {
  constexpr std::array<Flag, 8> kFlags{{{"ro", MS_RDONLY, 0},
                                        {"rw", 0, MS_RDONLY},
                                        {"nosuid", MS_NOSUID, 0},
                                        {"suid", 0, MS_NOSUID},
                                        {"nodev", MS_NODEV, 0},
                                        {"dev", 0, MS_NODEV},
                                        {"noexec", MS_NOEXEC, 0},
                                        {"exec", 0, MS_NOEXEC}}};
  std::string data;
  for (std::size_t at = 0; at <= options.size() && !options.empty();) {
    const std::size_t end = std::min(options.find(',', at), options.size());
    const std::string word = options.substr(at, end - at);
    at = end + 1;
    bool is_flag = false;
    for (const Flag& flag : kFlags) {
      if (flag.word != word) continue;
      flags = (flags | flag.set) & ~flag.cleared;
      is_flag = true;
    }
    if (is_flag || word.empty()) continue;
    if (!data.empty()) data += ',';
    data += word;
  }
  return data;
}

Problem make_memory(const Setup& setup) {
  if (Problem why = mount_at("tmp", "/tmp", "tmpfs", kPlain, "mode=1777"); !why.empty()) return why;
  for (const Memory& one : setup.memory) {
    unsigned long flags = 0;
    const std::string data = data_of(one.options, flags);
    if (Problem why = mount_at("tmpfs", one.target.c_str(), "tmpfs", flags, data.c_str());
        !why.empty()) {
      return why;
    }
  }
  return {};
}

Problem place_share(const Share& share) {
  const std::size_t slash = share.target.rfind('/');
  const std::string folder = share.is_folder ? share.target : share.target.substr(0, slash);
  bool made = folder.empty() || make_folders(folder) == 0;
  if (made && !share.is_folder && ::access(share.target.c_str(), F_OK) != 0) {
    const int fd = ::open(share.target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    made = fd >= 0;
    if (made) ::close(fd);
  }
  constexpr unsigned kMoveOpen = 0x04;  // MOVE_MOUNT_F_EMPTY_PATH
  if (!made ||
      ::syscall(SYS_move_mount, share.mount, "", AT_FDCWD, share.target.c_str(), kMoveOpen) != 0) {
    return problem("cannot mount a shared folder at `" + share.target + "`");
  }
  ::close(share.mount);
  if (!share.read_only) return {};
  if (::mount(nullptr, share.target.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) !=
      0) {
    return problem("cannot make `" + share.target + "` read-only");
  }
  return {};
}

void set_clock(const std::string& seconds) {
  if (seconds.empty()) return;
  timespec time{};
  // NOLINTNEXTLINE(cert-err34-c,bugprone-unchecked-*): mlenv's own number
  time.tv_sec = std::atoll(seconds.c_str());
  (void)::clock_settime(CLOCK_REALTIME, &time);
}

/// The image's root becomes ours; what was ours stays open to who holds a file of it.
Problem enter_image() {
  if (::chdir(kRoot) != 0 || ::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 ||
      ::chroot(".") != 0 || ::chdir("/") != 0) {
    return problem("cannot enter the image");
  }
  return {};
}

}  // namespace

std::string make_places(std::string_view text) {
  Setup setup;
  if (Problem why = read_setup(text, setup); !why.empty()) return why;
  if (Problem why = mount_image(); !why.empty()) return why;
  if (Problem why = take_shares(setup); !why.empty()) return why;
  if (Problem why = enter_image(); !why.empty()) return why;
  (void)::sethostname(setup.host_name.c_str(), setup.host_name.size());
  set_clock(setup.time);
  if (Problem why = make_devices(setup); !why.empty()) return why;
  if (Problem why = make_memory(setup); !why.empty()) return why;
  if (Problem why = mount_at("sysfs", "/sys", "sysfs", kQuiet | MS_RDONLY, nullptr); !why.empty()) {
    return why;
  }
  (void)mount_at("cgroup2", "/sys/fs/cgroup", "cgroup2", kQuiet | MS_RDONLY, nullptr);
  (void)make_folders("/proc");
  for (const Share& share : setup.shares) {
    if (Problem why = place_share(share); !why.empty()) return why;
  }
  writable_folder = setup.writable;
  raise_loopback();
  if (setup.has_network) return raise_network();
  return {};
}

void sync_shares() {
  if (shares_root >= 0) (void)::syncfs(shares_root);
}

void seal_image() {
  if (writable_folder.empty()) return;
  const char* const folder = writable_folder.c_str();
  (void)make_folders(writable_folder);
  (void)::mount(folder, folder, nullptr, MS_BIND, nullptr);
  (void)::mount(nullptr, "/", nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr);
}

}  // namespace mlenv::vm
