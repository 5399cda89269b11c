#include "runner/node/link_sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/secrets.hpp"
#include "base/socket_address.hpp"
#include "base/text.hpp"
#include "runner/facts/sources.hpp"
#include "runner/node/hello.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kHelloSize = 128;
constexpr std::string_view kLinkHello = "MLENV-LINK ";
constexpr std::string_view kLinkAnswer = "MLENV-LINK-OK\n";
constexpr std::chrono::seconds kGuestPatience{2};
constexpr std::size_t kMostLinkGuests = 4096;

std::string hello_text(std::string_view token, const LinkCall& call) {
  std::string text =
      fmt::format("{}{} {} {} {}", kLinkHello, token, call.kind, call.from, call.round);
  text.resize(kHelloSize - 1, ' ');
  return text + "\n";
}

/// nullopt: it does not know the token.
std::optional<LinkCall> read_hello(std::string_view text, std::string_view token) {
  const std::vector<std::string_view> words = words_of(text);
  constexpr std::size_t kWords = 5;
  if (!text.starts_with(kLinkHello) || words.size() != kWords || !same_secret(words[1], token)) {
    return std::nullopt;
  }
  const auto from = number_of(words[3]);
  const auto round = number_of(words[4]);
  if (words[2].size() != 1 || !from || !round) return std::nullopt;
  return LinkCall{words[2].front(), *from, *round};
}

void set_option(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

/// Latencies are of the network, and what waits in our own buffers is little.
void prepare_socket(int fd) {
  constexpr int kUnsent = 256 * 1024;
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsent);
}

}  // namespace

int milliseconds_until(LinkClock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - LinkClock::now()).count();
  constexpr std::int64_t kMost = 60'000;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kMost));
}

// --- LinkDoor --------------------------------------------------------------------------------

LinkDoor::LinkDoor(const std::string& address, std::string token) : token_(std::move(token)) {
  constexpr int kBacklog = 1024;
  constexpr std::size_t kTries = 8;  // a port may be taken meanwhile
  int error_number = EADDRINUSE;
  for (const std::uint16_t port : free_ports(kTries)) {
    const auto at = SocketAddress::of(address, port);
    if (!at) throw failure("no-interface", "`{}` is no address of this node", address);
    Fd fd = at->stream_socket();
    if (!fd) throw os_error(errno, "cannot make a socket");
    if (::bind(fd.get(), at->get(), at->size()) == 0 && ::listen(fd.get(), kBacklog) == 0) {
      fd_ = std::move(fd);
      port_ = port;
      return;
    }
    error_number = errno;
  }
  throw os_error(error_number, "cannot listen at {}", address);
}

void LinkDoor::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({fd_.get(), POLLIN, 0});
  for (const Guest& guest : guests_) fds.push_back({guest.fd.get(), POLLIN, 0});
}

void LinkDoor::hear(const pollfd* fds) {
  const bool knocks = (fds++)->revents != 0;
  std::vector<Guest> staying;
  for (Guest& guest : guests_) {
    const bool spoke = (fds++)->revents != 0;
    const bool late = LinkClock::now() - guest.since > kGuestPatience;
    if (spoke ? hear(guest) : !late) staying.push_back(std::move(guest));
  }
  guests_ = std::move(staying);
  if (knocks) accept_all();
}

void LinkDoor::accept_all() {
  while (true) {
    Fd fd{::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!fd) return;
    if (guests_.size() >= kMostLinkGuests) continue;
    prepare_socket(fd.get());
    guests_.push_back({std::move(fd)});
  }
}

bool LinkDoor::hear(Guest& guest) {
  std::array<char, kHelloSize> buffer{};
  const ssize_t count = ::read(guest.fd.get(), buffer.data(), kHelloSize - guest.said.size());
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  guest.said.append(buffer.data(), static_cast<std::size_t>(count));
  if (count == 0) return false;
  if (guest.said.size() < kHelloSize) return true;
  const std::optional<LinkCall> call = read_hello(guest.said, token_);
  // A socket that has sent nothing takes so little at once.
  if (call && ::send(guest.fd.get(), kLinkAnswer.data(), kLinkAnswer.size(), MSG_NOSIGNAL) ==
                  static_cast<ssize_t>(kLinkAnswer.size())) {
    arrived_.push_back({*call, std::move(guest.fd)});
  }
  return false;
}

Fd LinkDoor::take(const LinkCall& call) {
  // Those of earlier rounds came too late.
  std::erase_if(arrived_, [&](const Arrived& one) { return one.call.round < call.round; });
  const auto found = std::find_if(arrived_.begin(), arrived_.end(),
                                  [&](const Arrived& one) { return one.call == call; });
  if (found == arrived_.end()) return {};
  Fd fd = std::move(found->fd);
  arrived_.erase(found);
  return fd;
}

// --- LinkCaller ------------------------------------------------------------------------------

LinkCaller::LinkCaller(const std::string& own, const LinkPeer& peer, std::string_view token,
                       const LinkCall& call)
    : node_(peer.node), hello_(hello_text(token, call)) {
  connect(own, peer);
}

void LinkCaller::connect(const std::string& own, const LinkPeer& peer) {
  const auto from = SocketAddress::of(own, 0);
  const auto to = SocketAddress::of(peer.address, peer.port);
  if (!from || !to) return fail(EADDRNOTAVAIL);
  fd_ = to->stream_socket();
  if (!fd_) return fail(errno);
  prepare_socket(fd_.get());
  if (::bind(fd_.get(), from->get(), from->size()) != 0) return fail(errno);
  if (::connect(fd_.get(), to->get(), to->size()) == 0) return on_connected();
  if (errno != EINPROGRESS) fail(errno);
}

pollfd LinkCaller::wanted() const {
  const auto events = static_cast<short>(connected_ ? POLLIN : POLLOUT);
  return {over() ? -1 : fd_.get(), events, 0};
}

void LinkCaller::hear(short events) {
  if (over() || events == 0) return;
  if (connected_) return read_answer();
  int error_number = 0;
  socklen_t size = sizeof error_number;
  (void)::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error_number, &size);
  if (error_number != 0) return fail(error_number);
  on_connected();
}

void LinkCaller::on_connected() {
  connected_ = true;
  const ssize_t sent = ::send(fd_.get(), hello_.data(), hello_.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(hello_.size())) fail(sent < 0 ? errno : ECONNRESET);
}

void LinkCaller::read_answer() {
  std::array<char, kLinkAnswer.size()> buffer{};
  const ssize_t count = ::read(fd_.get(), buffer.data(), kLinkAnswer.size() - answer_.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count < 0) return fail(errno);
  answer_.append(buffer.data(), static_cast<std::size_t>(count));
  if (count > 0 && answer_.size() < kLinkAnswer.size()) return;
  how_ = answer_ == kLinkAnswer ? kReached : kStranger;
  if (how_ == kReached) return;
  said_ = count == 0 ? "it closed the connection" : "it is no mlenv";
  fd_.reset();
}

void LinkCaller::fail(int error_number) {
  said_ = errno_text(error_number);
  how_ = error_number == ECONNREFUSED || error_number == ECONNRESET ? kRefused
         : error_number == ETIMEDOUT                                ? kSilent
                                                                    : kUnreachable;
  fd_.reset();
}

void LinkCaller::give_up() {
  if (over()) return;
  how_ = kSilent;
  said_ = connected_ ? "it took the connection and said nothing" : "no answer";
  fd_.reset();
}

// --- waiting ---------------------------------------------------------------------------------

void wait_for_callers(std::vector<LinkCaller>& callers, LinkDoor& door,
                      LinkClock::time_point until) {
  const auto all_over = [&] {
    return std::all_of(callers.begin(), callers.end(),
                       [](const LinkCaller& one) { return one.over(); });
  };
  while (!all_over() && LinkClock::now() < until) {
    std::vector<pollfd> fds;
    for (const LinkCaller& one : callers) fds.push_back(one.wanted());
    door.add_to(fds);
    if (::poll(fds.data(), fds.size(), milliseconds_until(until)) < 0) continue;
    for (std::size_t i = 0; i < callers.size(); ++i) callers[i].hear(fds[i].revents);
    door.hear(fds.data() + callers.size());
  }
  for (LinkCaller& one : callers) one.give_up();
}

Fd wait_for_guest(LinkDoor& door, const LinkCall& call, LinkClock::time_point until) {
  while (true) {
    Fd fd = door.take(call);
    if (fd || LinkClock::now() >= until) return fd;
    std::vector<pollfd> fds;
    door.add_to(fds);
    if (::poll(fds.data(), fds.size(), milliseconds_until(until)) > 0) door.hear(fds.data());
  }
}

}  // namespace mlenv::job
