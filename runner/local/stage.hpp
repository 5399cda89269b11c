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

/// The stage's whole life in a process of its own; its exit status. Sends the outcome to `socket`.
int run_stage(const LocalRun& run, int socket) noexcept;

/// What goes over the socket: the request one way, the outcome the other (CBOR: arguments and paths
/// need not be UTF-8).
std::string render_request(const LocalRun& run);
LocalRun parse_request(std::string_view bytes);
std::string render_outcome(const JobEnd& end);
std::string render_outcome(const Error& error);
/// Throws the Error when that is what it holds.
JobEnd parse_outcome(std::string_view bytes);

}  // namespace mlenv
