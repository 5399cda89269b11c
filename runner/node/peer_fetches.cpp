#include "runner/node/peer_fetches.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "images/partial_blob.hpp"

namespace mlenv::job {
namespace {

constexpr std::chrono::seconds kMostConnecting{3};
/// Of one that owes something.
constexpr std::chrono::seconds kMostSilence{6};
constexpr std::size_t kPeerReadBytes = std::size_t{256} << 10U;
constexpr std::size_t kMostFetchedAtOnce = std::size_t{2} << 20U;

}  // namespace

PeerFetches::Peer& PeerFetches::peer(const FetchPiece& piece) {
  for (Peer& one : peers_) {
    if (one.address == piece.address && one.port == piece.port) return one;
  }
  Peer& made = peers_.emplace_back();
  made.address = piece.address;
  made.port = piece.port;
  made.fd = connect_to(piece.address, piece.port);
  made.out = std::string(kPeerMarker) + token_ + "\n";
  return made;
}

void PeerFetches::fetch(const FetchPiece& piece, std::uint64_t length) {
  Peer& from = peer(piece);
  if (from.asked.empty()) from.heard = from.turn = Clock::now();
  const std::uint64_t offset = piece.piece * kPieceBytes;
  from.asked.push_back({piece, offset, length});
  from.out += render_request_line({piece.digest, offset, length});
  if (!from.fd) return;  // tick() says so
  if (from.connected) (void)send(from);
}

void PeerFetches::add_to(std::vector<pollfd>& fds) const {
  for (const Peer& one : peers_) {
    const bool writes = !one.connected || !one.out.empty();
    fds.push_back(
        {one.fd ? one.fd.get() : -1, static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
  }
}

const pollfd* PeerFetches::hear(const pollfd* seen) {
  for (auto one = peers_.begin(); one != peers_.end();) {
    const short events = (seen++)->revents;
    const std::string why = events == 0 ? "" : serve(*one, events);
    if (why.empty()) {
      ++one;
      continue;
    }
    give_up(*one, why);
    one = peers_.erase(one);
  }
  return seen;
}

void PeerFetches::tick() {
  const auto now = Clock::now();
  for (auto one = peers_.begin(); one != peers_.end();) {
    const auto silent = now - one->heard;
    const bool idle = one->asked.empty();
    std::string why;
    if (!one->fd) why = "it cannot be connected to";
    if (!idle && !one->connected && silent > kMostConnecting) why = "it does not answer";
    if (!idle && silent > kMostSilence) why = "it gives nothing any more";
    if (why.empty() && !idle && now - one->turn > most_of_piece_) why = "it gives too little";
    if (why.empty()) {
      ++one;
      continue;
    }
    give_up(*one, why);
    one = peers_.erase(one);
  }
}

void PeerFetches::give_up(Peer& peer, const std::string& why) {
  for (const Asked& one : peer.asked) events_.failed(one.piece, why);
}

std::string PeerFetches::serve(Peer& peer, short events) {
  if (!peer.connected) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(peer.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return errno_text(error);
    peer.connected = true;
    peer.heard = Clock::now();
  }
  if (std::string why = send(peer); !why.empty()) return why;
  return (events & (POLLIN | POLLHUP | POLLERR)) != 0 ? receive(peer) : "";
}

std::string PeerFetches::send(Peer& peer) const {
  while (!peer.out.empty()) {
    const ssize_t count = ::send(peer.fd.get(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? "" : errno_text(errno);
    }
    peer.out.erase(0, static_cast<std::size_t>(count));
  }
  return {};
}

std::string PeerFetches::receive(Peer& peer) {
  std::string buffer(kPeerReadBytes, '\0');
  for (std::size_t taken = 0; taken < kMostFetchedAtOnce;) {
    const ssize_t count = ::recv(peer.fd.get(), buffer.data(), buffer.size(), 0);
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? "" : errno_text(errno);
    }
    if (count == 0) return "it closed the connection";
    peer.heard = Clock::now();
    taken += static_cast<std::size_t>(count);
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    if (std::string why = take(peer, bytes); !why.empty()) return why;
  }
  return {};
}

std::string PeerFetches::take(Peer& peer, std::string_view bytes) {
  while (!bytes.empty()) {
    if (peer.asked.empty()) return "it says what nobody asked for";
    Asked& first = peer.asked.front();
    if (!first.begun) {
      const std::size_t end = bytes.find('\n');
      peer.line += bytes.substr(0, end);
      if (peer.line.size() > kMostPeerLine) return "it speaks another language";
      if (end == std::string_view::npos) return {};
      bytes.remove_prefix(end + 1);
      const std::string line = std::exchange(peer.line, {});
      if (line != "OK") return "it answers `" + printable(line) + "`";
      first.begun = true;
      continue;
    }
    const std::size_t count =
        static_cast<std::size_t>(std::min<std::uint64_t>(first.left, bytes.size()));
    events_.bytes(first.piece, first.offset, bytes.substr(0, count));
    first.offset += count;
    first.left -= count;
    bytes.remove_prefix(count);
    if (first.left > 0) continue;
    const FetchPiece piece = first.piece;
    peer.asked.pop_front();
    peer.turn = Clock::now();
    events_.whole(piece);
  }
  return {};
}

}  // namespace mlenv::job
