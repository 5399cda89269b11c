#pragma once
// Processes that are put into a running container, each served by a process of its own: it has the
// OCI runtime start it, tells the asking mlenv how it ended, and ends it when that one is gone.
#include <vector>

#include "runner/local/bundle.hpp"
#include "runner/local/control.hpp"
#include "runner/local/image_root.hpp"
#include "runner/local/limits.hpp"
#include "runner/local/runtime.hpp"
#include "runner/local/serving.hpp"

namespace mlenv {

class ExecServer {
 public:
  /// `limits`: what the container began in; nullptr: nothing.
  ExecServer(const Runtime& runtime, const Container& container, const Bundle& bundle,
             const LimitGroup* limits)
      : runtime_(runtime), container_(container), bundle_(bundle), limits_(limits) {}

  /// `files`: standard input, output and error of the process, or none with a terminal.
  void start(const ExecRequest& request, std::vector<Fd> files, Fd connection);

 private:
  const Runtime& runtime_;
  const Container& container_;
  const Bundle& bundle_;
  const LimitGroup* limits_;
  unsigned count_ = 0;
  ServingProcesses serving_;
};

// What whoever serves such processes shares, of whatever runtime.

/// A copy of the stage keeps nothing of it but these descriptors: neither the job's streams nor
/// what tells others that the stage lives. It dies with the stage.
void leave_the_stage(std::vector<int> kept);
/// The run's own bundle with another process in it.
Bundle bundle_of(Bundle bundle, const ExecRequest& request, const ImageRoot& image);
/// Throws `bad-workdir` (usage) for a folder that is absent, as far as can be seen from outside: in
/// a mount the runtime will find out.
void check_folder(const Bundle& bundle, const ImageRoot& image);

/// What the server says to the client.
std::string render_started();
bool is_started(std::string_view bytes);
std::string render_signal(int number);
/// nullopt for what is none.
std::optional<int> parse_signal_packet(std::string_view bytes);

}  // namespace mlenv
