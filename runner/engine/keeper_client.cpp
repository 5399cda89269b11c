#include "runner/engine/keeper_client.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.hpp"
#include "runner/engine/keeper/patient.hpp"

namespace mlenv {
namespace {

using keeper::Word;

/// A keeper that is let run answers within moments; one that ends many processes, within seconds.
constexpr std::chrono::seconds kKeeperAnswer{60};
/// Once it has begun to speak, it goes on.
constexpr std::chrono::seconds kWholeFrame{5};
constexpr std::uint32_t kMostKeeperAnswer = std::max(sizeof(keeper::Ended), sizeof(keeper::Failed));

Error container_gone() {
  return failure("run-failed", "the container ended before the command")
      .because("something outside mlenv ended it, or it had no memory left");
}

template <class Value>
std::string object_bytes(const Value& value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class Value>
Value value_from(std::string_view bytes) {
  Value value{};
  if (bytes.size() != sizeof value) throw container_gone();
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

void add_text(std::string& bytes, std::string_view text) { bytes.append(text).push_back('\0'); }

std::uint32_t own_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

std::string render_start(const KeptProcess& process) {
  keeper::StartHead head;
  if (process.terminal) head.flags |= keeper::StartHead::kTerminal;
  if (::geteuid() == 0) head.flags |= keeper::StartHead::kGiveStreams;
  if (process.set_groups) head.flags |= keeper::StartHead::kSetGroups;
  if (process.make_workdir) head.flags |= keeper::StartHead::kMakeFolder;
  head.uid = process.user.uid;
  head.gid = process.user.gid;
  head.umask = own_umask();
  head.rows = process.rows;
  head.columns = process.columns;
  head.groups = static_cast<std::uint32_t>(process.user.groups.size());
  head.words = static_cast<std::uint32_t>(process.argv.size());
  head.variables = static_cast<std::uint32_t>(process.env.size());
  std::string bytes = object_bytes(head);
  for (const std::uint32_t group : process.user.groups) bytes += object_bytes(group);
  add_text(bytes, process.workdir);
  for (const std::string& word : process.argv) add_text(bytes, word);
  for (const std::string& variable : process.env) add_text(bytes, variable);
  return bytes;
}

}  // namespace

JobUsage usage_of(const keeper::Ended& use) {
  constexpr double kSecond = 1e6;
  return {static_cast<double>(use.user_microseconds) / kSecond,
          static_cast<double>(use.system_microseconds) / kSecond, use.read_blocks,
          use.written_blocks, use.largest_kilobytes};
}

struct Keeper::Frame {
  Word kind = Word::ended;
  std::string bytes;
  Fd file;
  bool is_there = false;
};

bool Keeper::send(Word kind, std::string_view bytes, const std::vector<int>& files) const {
  return keeper::send_by(connection_.get(), {static_cast<std::uint32_t>(bytes.size()), kind}, bytes,
                         files, keeper::Clock::now() + kKeeperAnswer);
}

Keeper::Frame Keeper::receive() {
  Frame frame;
  if (may_wait_ && !may_wait_()) return frame;
  const int socket = connection_.get();
  if (!keeper::wait_for(socket, POLLIN, keeper::Clock::now() + kKeeperAnswer)) return frame;
  const auto until = keeper::Clock::now() + kWholeFrame;
  std::string head_bytes(sizeof(keeper::Head), '\0');
  if (!keeper::read_by(socket, head_bytes, until, &frame.file)) return frame;
  keeper::Head head;
  std::memcpy(&head, head_bytes.data(), sizeof head);
  // No answer is longer: what is larger is none of the keeper's.
  if (head.bytes > kMostKeeperAnswer) return frame;
  frame.kind = head.kind;
  frame.bytes.resize(head.bytes);
  frame.is_there = keeper::read_by(socket, frame.bytes, until);
  return frame;
}

std::optional<pid_t> Keeper::process() const {
  ucred other{};
  socklen_t size = sizeof other;
  const bool known =
      ::getsockopt(connection_.get(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.pid > 0;
  return known ? std::optional(other.pid) : std::nullopt;
}

Fd Keeper::hello() {
  Frame frame = receive();
  if (!frame.is_there || frame.kind != Word::hello || !frame.file) throw container_gone();
  return std::move(frame.file);
}

void Keeper::require_done(const std::string& what) {
  const Frame frame = receive();
  if (!frame.is_there) throw container_gone();
  if (frame.kind == Word::done) return;
  throw failure("image-root", "cannot make `{}` in the container", what)
      .because(errno_text(value_from<keeper::Failed>(frame.bytes).error));
}

void Keeper::write(const std::string& path, std::string_view text, const keeper::FileHead& head) {
  std::string bytes = object_bytes(head);
  add_text(bytes, path);
  bytes += text;
  if (!send(Word::file, bytes)) throw container_gone();
  require_done(path);
}

void Keeper::make_folder(const std::string& path, const keeper::FolderHead& head) {
  std::string bytes = object_bytes(head);
  add_text(bytes, path);
  if (!send(Word::folder, bytes)) throw container_gone();
  require_done(path);
}

void Keeper::make_link(const std::string& path, const std::string& leads_to) {
  std::string bytes;
  add_text(bytes, path);
  add_text(bytes, leads_to);
  if (!send(Word::link, bytes)) throw container_gone();
  require_done(path);
}

void Keeper::set_mode(const std::string& path, std::uint32_t mode) {
  std::string bytes = object_bytes(keeper::FileHead{mode, 0, 0});
  add_text(bytes, path);
  if (!send(Word::mode, bytes)) throw container_gone();
  require_done(path);
}

std::optional<Keeper::Started> Keeper::start(const KeptProcess& process, keeper::Failed& problem) {
  if (!send(Word::start, render_start(process), process.streams)) throw container_gone();
  Frame frame = receive();
  if (!frame.is_there) throw container_gone();
  if (frame.kind == Word::started) {
    // Whoever speaks in the keeper's place gets no keyboard that nobody meant for it.
    const bool is_master = process.terminal && frame.file && ::isatty(frame.file.get()) == 1;
    return Started{is_master ? std::move(frame.file) : Fd{}};
  }
  problem = value_from<keeper::Failed>(frame.bytes);
  return std::nullopt;
}

void Keeper::signal(int number) const {
  (void)send(Word::signal, object_bytes(static_cast<std::int32_t>(number)));
}

Keeper Keeper::channel() const {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  Keeper ours{Fd{ends[0]}};
  const Fd theirs{ends[1]};
  if (!send(Word::channel, "", {theirs.get()})) throw container_gone();
  return ours;
}

bool Keeper::reset(const std::vector<std::string>& folders) {
  std::string bytes;
  for (const std::string& folder : folders) add_text(bytes, folder);
  return send(Word::reset, bytes) && receive().is_there;
}

std::optional<Keeper::End> Keeper::ended() {
  const Frame frame = receive();
  if (!frame.is_there || frame.kind != Word::ended) return std::nullopt;
  const auto use = value_from<keeper::Ended>(frame.bytes);
  if (WIFSIGNALED(use.status)) return End{{kSignalBase + WTERMSIG(use.status), true}, use};
  return End{{WEXITSTATUS(use.status), false}, use};
}

}  // namespace mlenv
