#include "runner/local/stop_listener.hpp"

#include <sys/socket.h>

#include "base/error.hpp"
#include "runner/local/stage.hpp"

namespace mlenv {
namespace {

/// Others wait in the kernel meanwhile.
constexpr std::size_t kMostAsking = 64;

/// Takes the one packet of a connection that can be read, and answers it. nullopt: it was no
/// request to stop, or nobody is there any more.
std::optional<StopRequest> answer_stop(const Fd& connection) {
  const Packet packet = receive_packet(connection.get());
  if (packet.bytes.empty()) return std::nullopt;
  const ControlRequest request = parse_request_packet(packet.bytes);
  if (request.stop) {
    (void)send_packet(connection.get(), render_outcome(Exit{}));
    return request.stop;
  }
  (void)send_packet(
      connection.get(),
      render_outcome(failure("run-unseen", "this run's processes are on its nodes")
                         .hint("`mlenv runs show RUN` tells which; `mlenv exec` and `mlenv watch` "
                               "work there, on the runs of its ranks")));
  return std::nullopt;
}

}  // namespace

void StopListener::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({asking_.size() < kMostAsking ? control_ : -1, POLLIN, 0});
  for (const Fd& one : asking_) fds.push_back({one.get(), POLLIN, 0});
}

std::optional<StopRequest> StopListener::hear(const pollfd* seen) {
  const bool somebody_came = (seen++)->revents != 0;
  std::optional<StopRequest> stop;
  std::vector<Fd> asking;
  for (Fd& one : asking_) {
    if ((seen++)->revents == 0) {
      asking.push_back(std::move(one));
    } else if (const auto request = answer_stop(one)) {
      stop = request;
    }
  }
  asking_ = std::move(asking);
  if (somebody_came) {
    Fd connection{::accept4(control_, nullptr, nullptr, SOCK_CLOEXEC)};
    if (connection) asking_.push_back(std::move(connection));
  }
  return stop;
}

}  // namespace mlenv
