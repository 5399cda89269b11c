#pragma once
// The process between mlenv and the OCI runtime: it has one thread, so that it may unshare. It
// makes namespaces, overlay and bundle, runs the runtime, and answers over a socket how the job
// ended. When the other end of the socket closes it ends the container.
#include <string>

#include "base/error.hpp"
#include "runner/local/run.hpp"

namespace mlenv {

inline constexpr std::string_view kStageArgument = "__run";
/// Where the socket is after a re-exec.
inline constexpr int kStageSocket = 3;
inline constexpr int kStageControl = 4;
inline constexpr int kStageOut = 5;
inline constexpr int kStageErr = 6;
inline constexpr int kStageLayer = 7;

/// The stage's whole life in a process of its own; its exit status. Sends the outcome to `socket`.
int run_stage(const LocalRun& run, int socket) noexcept;

/// What goes over the socket: the request one way; events and the outcome the other, each after its
/// length (CBOR: arguments and paths need not be UTF-8).
std::string render_request(const LocalRun& run);
LocalRun parse_request(std::string_view bytes);
std::string render_outcome(const Exit& exit);
std::string render_outcome(const Error& error);
struct StageOutcome {
  RunOutcome run;
  std::string complaint;  ///< why the command was not started
};
std::string render_outcome(const RunOutcome& run, const std::string& complaint = {});
/// Throws the Error when that is what it holds.
StageOutcome parse_stage_outcome(std::string_view bytes);
Exit parse_outcome(std::string_view bytes);
/// That the command runs, or that an attempt is over.
std::string render_event(const std::optional<AttemptEnd>& attempt);
/// Calls what `events` has for it; false for what is no event.
bool take_event(std::string_view bytes, const RunEvents& events);
/// With its length in front.
std::string framed(std::string_view bytes);
/// Takes one from the front; nullopt while it is not all there.
std::optional<std::string> take_frame(std::string& bytes);
/// All of it, then the end of file; stops quietly when the other side is gone (its end tells).
void send_all(int socket, std::string_view bytes);

}  // namespace mlenv
