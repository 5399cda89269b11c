#pragma once
// How another mlenv of the same user talks to a run that goes on: a Unix socket in the run's own
// folder (0700, the socket 0600), on which the run's stage listens. Packets are CBOR records, each
// whole, with open files beside them where there are some (unix(7), SCM_RIGHTS).
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"

namespace mlenv {

struct Packet {
  std::string bytes;  ///< empty: the other side is gone
  std::vector<Fd> files;
};

/// The listening socket, made in `run_folder` (however long its path is). Throws `io` and its kin.
Fd listen_for_control(const fs::path& run_folder);
/// Throws `run-ended` when nobody listens, `permission` when the run is somebody else's,
/// `run-unseen` when whoever listens takes nobody in. Nothing that is said there waits for more
/// than ten seconds.
Fd connect_to_run(const fs::path& run_folder, std::string_view id);
/// `run-unseen`: its mlenv does not answer.
Error no_answer_of_run(std::string_view id);

/// False when the other side is gone or does not read. Throws `usage` when a packet is too large
/// for the kernel.
bool send_packet(int socket, std::string_view bytes, const std::vector<int>& files = {});
/// Waits for one.
Packet receive_packet(int socket);
/// The same, but not for longer: without bytes as if the other side were gone.
Packet receive_packet_within(int socket, std::chrono::milliseconds most);
inline constexpr std::chrono::seconds kMostControlAnswer{30};

/// What may be asked for.
struct StopRequest {
  std::optional<std::uint64_t> grace_ms;  ///< nothing: the run's own
};
struct ExecRequest {
  std::vector<std::string> argv;  ///< empty: the best shell that the image has
  std::vector<std::string> env;   ///< `K=V`, over the run's
  std::string workdir;            ///< empty: the run's; relative: below that
  std::string term;               ///< TERM for the terminal
  bool terminal = false;
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
};
std::string render_stop(const StopRequest& request);
std::string render_exec(const ExecRequest& request);
/// Where its processes are: the answer brings a pidfd of the first process of their namespace, and
/// the namespace itself where that process does not show it.
std::string render_where();
/// One of them is filled; none for bytes that are none of them.
struct ControlRequest {
  std::optional<StopRequest> stop;
  std::optional<ExecRequest> exec;
  bool where = false;
};
ControlRequest parse_request_packet(std::string_view bytes);

}  // namespace mlenv
