#include "runner/local/stop_answer.hpp"

#include "base/error.hpp"
#include "runner/local/stage.hpp"

namespace mlenv {

std::optional<StopRequest> answer_stop_alone(Fd connection) {
  const Packet packet = receive_packet(connection.get());
  if (packet.bytes.empty()) return std::nullopt;
  ControlRequest request;
  try {
    request = parse_request_packet(packet.bytes);
  } catch (const std::exception&) {
    // Of another version of mlenv: it is told the same as of what is no request to stop.
  }
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

}  // namespace mlenv
