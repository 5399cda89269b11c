#include "runner/node/link_tester.hpp"

#include <unistd.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "runner/node/link_flow.hpp"
#include "runner/node/link_sockets.hpp"

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;

constexpr char kReachCall = 'c';
constexpr char kPairCall = 'p';      ///< round trips, and bytes from the caller
constexpr char kPairBackCall = 'b';  ///< bytes to the caller
constexpr char kRingCall = 'r';
constexpr std::size_t kMostRingBytes = std::size_t{64} << 20;

class LinkTestServer {
 public:
  void serve() {
    std::string bytes;
    while (true) {
      std::vector<pollfd> fds{{STDIN_FILENO, POLLIN, 0}};
      if (door_) door_->add_to(fds);
      if (::poll(fds.data(), fds.size(), -1) < 0) continue;
      if (door_) door_->hear(fds.data() + 1);
      if (fds.front().revents == 0) continue;
      if (!read_more(STDIN_FILENO, bytes)) return;
      for (const std::string& line : take_lines(bytes)) {
        const std::string answer = render_link_answer(answer_to(parse_link_request(line))) + "\n";
        write_all(STDOUT_FILENO, as_bytes(answer));
      }
    }
  }

 private:
  LinkAnswer answer_to(const LinkRequest& request) {
    LinkAnswer answer;
    answer.what = request.what;
    answer.round = request.round;
    try {
      if (request.what == kLinkOpen) {
        open(request, answer);
      } else if (!door_) {
        answer.problem = "it was not asked to listen";
      } else {
        measure(request, answer);
      }
    } catch (const Error& error) {
      answer.problem = error.what();
    }
    return answer;
  }

  void open(const LinkRequest& request, LinkAnswer& answer) {
    address_ = request.address;
    token_ = request.token;
    door_.emplace(request.address, request.token);
    answer.port = door_->port();
  }

  void measure(const LinkRequest& request, LinkAnswer& answer) {
    const auto until = LinkClock::now() + milliseconds(request.limit_ms);
    if (request.what == kLinkReach) {
      reach(request, until, answer);
    } else if (request.what == kLinkPair && request.peers.size() == 1) {
      request.calls ? call(request, until, answer) : wait(request, until, answer);
    } else if (request.what == kLinkRing && request.peers.size() == 2 && request.nodes >= 2) {
      ring(request, until, answer);
    } else {
      answer.problem = "this mlenv does not know what was asked";
    }
  }

  void reach(const LinkRequest& request, LinkClock::time_point until, LinkAnswer& answer) {
    std::vector<LinkCaller> callers;
    for (const LinkPeer& peer : request.peers) callers.push_back(caller(request, peer, kReachCall));
    wait_for_callers(callers, *door_, until);
    for (const LinkCaller& one : callers) answer.reached.push_back(one.reached());
  }

  LinkCaller caller(const LinkRequest& request, const LinkPeer& peer, char kind) const {
    return {address_, peer, token_, {kind, request.self, request.round}};
  }

  /// An empty one: the answer says why.
  Fd connect(const LinkRequest& request, char kind, LinkClock::time_point until,
             LinkAnswer& answer) {
    std::vector<LinkCaller> callers;
    callers.push_back(caller(request, request.peers.front(), kind));
    wait_for_callers(callers, *door_, until);
    const LinkReached reached = callers.front().reached();
    if (reached.how != kReached) answer.problem = reached.said;
    return callers.front().take();
  }

  Fd await(const LinkRequest& request, char kind, std::uint64_t from, LinkClock::time_point until,
           LinkAnswer& answer) {
    Fd fd = wait_for_guest(*door_, {kind, from, request.round}, until);
    if (!fd) answer.problem = "the other end did not connect";
    return fd;
  }

  static void take_stream(const Fd& fd, const LinkRequest& request, LinkClock::time_point until,
                          LinkAnswer& answer) {
    answer.bits_per_second = receive_stream(fd.get(), milliseconds(request.span_ms), until);
    if (!answer.bits_per_second) answer.problem = "not one byte of a stream came";
  }

  void call(const LinkRequest& request, LinkClock::time_point until, LinkAnswer& answer) {
    Fd fd = connect(request, kPairCall, until, answer);
    if (!fd) return;
    answer.round_trip_seconds = round_trip(fd.get(), until);
    send_stream(fd.get(), milliseconds(request.span_ms), until);
    fd = connect(request, kPairBackCall, until, answer);
    if (fd) take_stream(fd, request, until, answer);
  }

  void wait(const LinkRequest& request, LinkClock::time_point until, LinkAnswer& answer) {
    const std::uint64_t from = request.peers.front().node;
    Fd fd = await(request, kPairCall, from, until, answer);
    if (!fd) return;
    if (answer_round_trips(fd.get(), until)) take_stream(fd, request, until, answer);
    fd = await(request, kPairBackCall, from, until, answer);
    if (fd) send_stream(fd.get(), milliseconds(request.span_ms), until);
  }

  void ring(const LinkRequest& request, LinkClock::time_point until, LinkAnswer& answer) {
    const Fd next = connect(request, kRingCall, until, answer);
    if (!next) return;
    const Fd before = await(request, kRingCall, request.peers.back().node, until, answer);
    if (!before) return;
    const RingResult result =
        ring_allreduce({request.self % request.nodes, request.nodes, next.get(), before.get()},
                       std::min<std::size_t>(request.bytes, kMostRingBytes), request.times, until);
    answer.ring_seconds = result.seconds;
    answer.sums_right = result.sums_right;
    if (result.seconds.size() < request.times) answer.problem = "it did not come to its end";
  }

  std::string address_;
  std::string token_;
  std::optional<LinkDoor> door_;
};

}  // namespace

void serve_link_tests() { LinkTestServer{}.serve(); }

}  // namespace mlenv::job
