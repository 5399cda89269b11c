#pragma once
// A job in the background: its controller is a process of its own session, without a terminal, that
// drives and records it as one in the foreground does, and lets other mlenvs talk to it. It ends
// with the job.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/job/plan_file.hpp"
#include "runner/launch/hosts.hpp"

namespace mlenv::job {

struct DetachedJob {
  PlanFile file;            ///< engine `local` or `ssh`
  RunStart start;           ///< of the job's own record
  std::vector<Host> hosts;  ///< of ssh
};

struct StartedJob {
  std::string id;           ///< of its record
  std::optional<int> over;  ///< it has ended before a rank ran: with that status
};

/// Returns once a rank runs, or the job waits for other runs; a caller that ends before that ends
/// the job. What is wrong before that is thrown, what happens until then is told to `notice`, a
/// sentence at a time.
StartedJob start_detached_job(const DetachedJob& job,
                              const std::function<void(const std::string&)>& notice);

/// The request as a controller of the same build reads it.
std::string render_detached_job(const DetachedJob& job);
DetachedJob parse_detached_job(std::string_view bytes);

/// The controller: main() calls this before any thread exists and returns its value when it is
/// engaged (`mlenv __drive`). nullopt: this is an ordinary start.
std::optional<int> detached_job_main(int argc, char** argv);

/// Nodes of the engine `local` or `ssh`.
std::unique_ptr<NodeStarter> starter_of(const std::string& engine, const fs::path& store,
                                        std::uint64_t most_nodes, std::vector<Host> hosts);

}  // namespace mlenv::job
