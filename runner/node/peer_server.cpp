#include "runner/node/peer_server.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/secrets.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kMostPeerGuests = 256;
/// One that has not said the token by then is turned away.
constexpr std::chrono::seconds kGuestSilence{5};
/// That wait in one connection: as many as may be under way, and those that were given up.
constexpr std::size_t kMostRequestBytes = std::size_t{64} << 10U;
constexpr std::size_t kFillBytes = std::size_t{256} << 10U;
/// In one go, before others have theirs.
constexpr std::size_t kMostServedAtOnce = std::size_t{2} << 20U;
/// Until it has said the token.
constexpr std::size_t kMostUnknown = 256;

}  // namespace

std::uint16_t PeerServer::open(const std::string& token, const std::string& address) {
  guests_.clear();
  token_ = token;
  std::uint16_t port = 0;
  listening_ = token.empty() ? Fd{} : listen_at(address, port);
  return listening_ ? port : std::uint16_t{0};
}

void PeerServer::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({listening_ ? listening_.get() : -1, POLLIN, 0});
  for (const Guest& guest : guests_) {
    const bool asks = guest.known && guest.in.find('\n') != std::string::npos;
    const bool has_more = guest.sent < guest.out.size() || guest.source || asks;
    fds.push_back({guest.fd.get(), static_cast<short>(has_more ? POLLIN | POLLOUT : POLLIN), 0});
  }
}

const pollfd* PeerServer::hear(const pollfd* seen) {
  const auto now = std::chrono::steady_clock::now();
  const bool knocked = (seen++)->revents != 0;
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const short events = (seen++)->revents;
    const bool late = !guest->known && now - guest->since > kGuestSilence;
    const bool stays = !late && (events == 0 || serve(*guest, events));
    guest = stays ? std::next(guest) : guests_.erase(guest);
  }
  if (knocked) accept_all();
  return seen;
}

void PeerServer::accept_all() {
  while (guests_.size() < kMostPeerGuests) {
    Fd fd{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!fd) return;
    guests_.push_back({std::move(fd)});
  }
  // Whoever comes beyond that is turned away, and gets its pieces elsewhere.
  const Fd turned_away{::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
}

/// False: it is gone, or nobody of ours.
bool PeerServer::serve(Guest& guest, short events) {
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !take(guest)) return false;
  return answer(guest);
}

bool PeerServer::take(Guest& guest) const {
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = ::recv(guest.fd.get(), buffer.data(), buffer.size(), 0);
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN;
    }
    if (count == 0) return false;
    guest.in.append(buffer.data(), static_cast<std::size_t>(count));
    if (guest.in.size() > kMostRequestBytes) return false;
    if (guest.known) continue;
    const std::size_t end = guest.in.find('\n');
    if (end == std::string::npos && guest.in.size() > kMostUnknown) return false;
    if (end == std::string::npos) continue;
    const std::string_view line = std::string_view(guest.in).substr(0, end);
    if (!line.starts_with(kPeerMarker)) return false;
    if (!same_secret(line.substr(kPeerMarker.size()), token_)) return false;
    guest.known = true;
    guest.in.erase(0, end + 1);
  }
}

bool PeerServer::answer(Guest& guest) {
  for (std::size_t sent = 0; sent < kMostServedAtOnce;) {
    if (guest.sent == guest.out.size() && !fill(guest)) return false;
    if (guest.sent == guest.out.size()) return true;  // it has all that it asked for
    const std::string_view rest = std::string_view(guest.out).substr(guest.sent);
    const ssize_t count = ::send(guest.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN;
    }
    guest.sent += static_cast<std::size_t>(count);
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

/// More of what it asked for into `out`. False: what was promised cannot be given.
bool PeerServer::fill(Guest& guest) const {
  guest.out.clear();
  guest.sent = 0;
  if (!guest.known) return true;
  if (!guest.source) {
    const std::size_t end = guest.in.find('\n');
    if (end == std::string::npos) return guest.in.size() <= kMostPeerLine;
    const auto request = parse_request_line(std::string_view(guest.in).substr(0, end));
    guest.in.erase(0, end + 1);
    if (!request) return false;
    try {
      guest.source = find_(*request);
    } catch (const Error&) {
      guest.source = nullptr;
    }
    guest.left = request->length;
    guest.out = guest.source ? "OK\n" : "NO it is not there\n";
    return true;
  }
  try {
    guest.out.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kFillBytes, guest.left)));
    const std::size_t count =
        guest.source->read(std::as_writable_bytes(std::span(guest.out.data(), guest.out.size())));
    guest.out.resize(count);
    guest.left -= count;
    if (count == 0 && guest.left > 0) return false;
  } catch (const Error&) {
    return false;
  }
  if (guest.left == 0) guest.source.reset();
  return true;
}

}  // namespace mlenv::job
