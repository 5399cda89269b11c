#include "runner/watch/waits.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/core.h>

#include "base/text.hpp"
#include "runner/facts/sources.hpp"
#include "runner/watch/proc.hpp"

namespace mlenv::watch {
namespace {

/// What a system call does, as far as waiting goes.
enum class Call { reads, reads_second, writes, sends, receives, polls, polls_set, sleeps, opens };

struct CallKind {
  long number;
  Call call;
};

// Numbers differ between architectures, and newer ones lack the older calls.
constexpr CallKind kCalls[] = {
    {SYS_read, Call::reads},
    {SYS_pread64, Call::reads},
    {SYS_readv, Call::reads},
    {SYS_preadv, Call::reads},
    {SYS_preadv2, Call::reads},
    {SYS_splice, Call::reads},
    {SYS_copy_file_range, Call::reads},
    {SYS_readahead, Call::reads},
    {SYS_getdents64, Call::reads},
    {SYS_sendfile, Call::reads_second},
    {SYS_write, Call::writes},
    {SYS_pwrite64, Call::writes},
    {SYS_writev, Call::writes},
    {SYS_pwritev, Call::writes},
    {SYS_fsync, Call::writes},
    {SYS_fdatasync, Call::writes},
    {SYS_sync_file_range, Call::writes},
    {SYS_syncfs, Call::writes},
    {SYS_sendto, Call::sends},
    {SYS_sendmsg, Call::sends},
    {SYS_connect, Call::sends},
    {SYS_recvfrom, Call::receives},
    {SYS_recvmsg, Call::receives},
    {SYS_recvmmsg, Call::receives},
    {SYS_accept, Call::receives},
    {SYS_accept4, Call::receives},
    {SYS_ppoll, Call::polls},
    {SYS_epoll_pwait, Call::polls_set},
    {SYS_epoll_pwait2, Call::polls_set},
    {SYS_nanosleep, Call::sleeps},
    {SYS_clock_nanosleep, Call::sleeps},
    {SYS_openat, Call::opens},
    {SYS_statx, Call::opens},
    {SYS_newfstatat, Call::opens},
    {SYS_io_getevents, Call::opens},
#ifdef SYS_poll
    {SYS_poll, Call::polls},
    {SYS_epoll_wait, Call::polls_set},
    {SYS_open, Call::opens},
    {SYS_stat, Call::opens},
#endif
};

/// `ADDRESS` of the other end of a socket of TCP or UDP; nothing: it is none.
std::optional<std::string> peer_of(const fs::path& process, std::string_view inode) {
  constexpr std::size_t kRemote = 2;  // columns of proc_net_tcp
  constexpr std::size_t kInode = 9;
  for (const char* const table : {"tcp", "tcp6", "udp", "udp6"}) {
    const std::string text = text_in(process / "net" / table);
    for (const std::string_view line : split(text, '\n')) {
      const std::vector<std::string_view> words = words_of(line);
      if (words.size() > kInode && words[kInode] == inode) return address_of(words[kRemote]);
    }
  }
  return std::nullopt;
}

/// A FIFO has a path as a file has. By what the kernel remembers: a server that hangs is not asked.
bool leads_to_fifo(const fs::path& descriptor) {
  struct statx found {};
  return ::statx(AT_FDCWD, descriptor.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &found) == 0 &&
         S_ISFIFO(found.stx_mode);
}

/// What it is that a descriptor leads to.
Waiting of_descriptor(const fs::path& process, std::uint64_t descriptor) {
  std::error_code error;
  const fs::path at = process / "fd" / std::to_string(descriptor);
  const std::string target = fs::read_symlink(at, error).string();
  constexpr std::string_view kSocket = "socket:[";
  if (target.starts_with("pipe:")) return {Wait::pipe, "a pipe"};
  if (target.starts_with(kSocket)) {
    const std::string inode = target.substr(kSocket.size(), target.size() - kSocket.size() - 1);
    if (auto peer = peer_of(process, inode)) return {Wait::network, *std::move(peer)};
    return {Wait::pipe, "a local socket"};
  }
  if (target.starts_with("/dev/")) return {Wait::other, target};
  if (target.starts_with("/")) return {leads_to_fifo(at) ? Wait::pipe : Wait::disk, target};
  return {};
}

/// Of several the one that says most.
Waiting most_telling(const fs::path& process, const std::vector<std::uint64_t>& descriptors) {
  Waiting best;
  for (const std::uint64_t one : descriptors) {
    Waiting found = of_descriptor(process, one);
    if (found.wait == Wait::network) return found;
    // That a file could be read is never waited for: poll(2).
    if (found.wait == Wait::pipe) best = std::move(found);
  }
  return best;
}

Waiting of_poll(const fs::path& process, const SystemCall& call) {
  constexpr std::size_t kMost = 16;
  const std::size_t count = std::min<std::size_t>(call.arguments[1], kMost);
  if (count == 0) return {Wait::time, {}};
  std::array<pollfd, kMost> polled{};
  const Fd memory{::open((process / "mem").c_str(), O_RDONLY | O_CLOEXEC)};
  const auto wanted = static_cast<ssize_t>(count * sizeof(pollfd));
  if (!memory || ::pread(memory.get(), polled.data(), static_cast<std::size_t>(wanted),
                         static_cast<off_t>(call.arguments[0])) != wanted) {
    return {};
  }
  std::vector<std::uint64_t> descriptors;
  for (std::size_t i = 0; i < count; ++i) {
    if (polled.at(i).fd >= 0 && (polled.at(i).events & POLLIN) != 0) {
      descriptors.push_back(static_cast<std::uint64_t>(polled.at(i).fd));
    }
  }
  return most_telling(process, descriptors);
}

Waiting of_poll_set(const fs::path& process, std::uint64_t descriptor) {
  const std::string text = text_in(process / "fdinfo" / std::to_string(descriptor));
  std::vector<std::uint64_t> descriptors;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() < 2 || words[0] != "tfd:") continue;
    if (const auto number = number_of(words[1])) descriptors.push_back(*number);
  }
  return most_telling(process, descriptors);
}

/// Writing anything but a message on the network.
Waiting of_write(const fs::path& process, std::uint64_t descriptor) {
  Waiting found = of_descriptor(process, descriptor);
  if (found.wait != Wait::network) found.wait = Wait::output;
  return found;
}

Waiting of_call(const fs::path& process, const SystemCall& call) {
  const auto* const kind =
      std::find_if(std::begin(kCalls), std::end(kCalls),
                   [&](const CallKind& one) { return one.number == call.number; });
  if (kind == std::end(kCalls)) return {};
  switch (kind->call) {
    case Call::reads:
    case Call::receives:
      return of_descriptor(process, call.arguments[0]);
    case Call::reads_second:
      return of_descriptor(process, call.arguments[1]);
    case Call::writes:
      return of_write(process, call.arguments[0]);
    case Call::sends: {
      const Waiting found = of_descriptor(process, call.arguments[0]);
      return found.wait == Wait::network ? found : Waiting{};
    }
    case Call::polls:
      return of_poll(process, call);
    case Call::polls_set:
      return of_poll_set(process, call.arguments[0]);
    case Call::sleeps:
      return {Wait::time, {}};
    case Call::opens:
      return {Wait::disk, {}};
  }
  return {};
}

/// `0500000A`: each four bytes as this machine has them in memory.
std::optional<std::string> address_bytes(std::string_view hex) {
  constexpr std::size_t kDigits = 8;
  std::string bytes;
  for (; hex.size() >= kDigits; hex.remove_prefix(kDigits)) {
    std::uint32_t word = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + kDigits, word, 16);
    if (error != std::errc{} || end != hex.data() + kDigits) return std::nullopt;
    std::array<char, sizeof word> part{};
    std::memcpy(part.data(), &word, sizeof word);
    bytes.append(part.data(), part.size());
  }
  return hex.empty() ? std::optional(bytes) : std::nullopt;
}

}  // namespace

std::string name_of(Wait wait) {
  constexpr std::array<const char*, kWaits> kNames = {"none", "disk", "output", "network",
                                                      "pipe", "time", "other"};
  return kNames.at(static_cast<std::size_t>(wait));
}

std::optional<SystemCall> parse_system_call(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty()) return std::nullopt;
  SystemCall call;
  call.running = words[0] == "running";
  call.none = words[0] == "-1";
  if (call.running || call.none) return call;
  const auto number = number_of(words[0]);
  if (!number) return std::nullopt;
  call.number = static_cast<long>(*number);
  for (std::size_t i = 0; i < call.arguments.size() && i + 1 < words.size(); ++i) {
    std::string_view word = words[i + 1];
    if (word.starts_with("0x")) word.remove_prefix(2);
    (void)std::from_chars(word.data(), word.data() + word.size(), call.arguments.at(i), 16);
  }
  return call;
}

std::string address_of(std::string_view hex) {
  const std::size_t colon = hex.find(':');
  if (colon == std::string_view::npos) return {};
  const std::optional<std::string> bytes = address_bytes(hex.substr(0, colon));
  const std::string_view port = hex.substr(colon + 1);
  unsigned number = 0;
  (void)std::from_chars(port.data(), port.data() + port.size(), number, 16);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bytes && bytes->size() == sizeof(in_addr) &&
      ::inet_ntop(AF_INET, bytes->data(), text.data(), text.size()) != nullptr) {
    return fmt::format("{}:{}", text.data(), number);
  }
  if (bytes && bytes->size() == sizeof(in6_addr) &&
      ::inet_ntop(AF_INET6, bytes->data(), text.data(), text.size()) != nullptr) {
    return fmt::format("[{}]:{}", text.data(), number);
  }
  return {};
}

Waiting waiting_of(const fs::path& process, pid_t thread, char state) {
  if (state == 'R') return {Wait::none, {}};
  const std::optional<SystemCall> call =
      parse_system_call(text_in(process / "task" / std::to_string(thread) / "syscall"));
  if (!call) return {state == 'D' ? Wait::disk : Wait::other, {}};
  if (call->running) return {Wait::none, {}};
  if (call->none) return {state == 'D' ? Wait::disk : Wait::other, {}};
  Waiting found = of_call(process, *call);
  // A local socket or pipe is read without being uninterruptible: nothing is known then.
  if (state == 'D' && found.wait == Wait::pipe) found = {};
  return found;
}

}  // namespace mlenv::watch
