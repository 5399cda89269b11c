#pragma once
// What `mlenv run`, and what is like it, was asked for: as words, and understood.
#include <optional>
#include <string>
#include <vector>

#include "cli/run_devices.hpp"
#include "cli/run_job.hpp"
#include "cli/run_layer.hpp"
#include "cli/run_life.hpp"
#include "cli/run_matrix.hpp"
#include "cli/run_notebook.hpp"
#include "cli/run_options.hpp"
#include "cli/run_repeat.hpp"

namespace mlenv::cli {

struct AskedWords {
  std::string image;
  std::vector<std::string> mounts;
  std::vector<std::string> env;
  std::string workdir;
  std::string runtime;
  DeviceWords devices;
  RunWords words;
  bool no_project = false;
  bool no_check = false;
  bool tty = false;
  bool locked = false;
  bool shell = false;   ///< an interactive one in place of a command
  std::string jupyter;  ///< the word of `--jupyter`; empty: none
  LifeWords life;
  LayerWords layer;
  RepeatOptions repeat;
  MatrixWords matrix;
  JobWords job;
  std::vector<std::string> command;
};

/// All of it, understood before anything is built or unpacked.
struct Asked {
  std::vector<Mount> mounts;
  RunChoice choice;
  DeviceChoice devices;
  CdiEdits rdma;  ///< of a run here; a job's nodes have devices of their own
  Life life;
  std::optional<NotebookChoice> jupyter;
  std::optional<MatrixChoice> matrix;
  std::optional<JobChoice> job;
  std::vector<std::string> after;  ///< ids of runs that are to end well before
  bool terminal = false;
  bool in_vm = false;
};

/// Of a job.yaml `options` get what it says, as if it had been asked for by options. Throws `usage`
/// and the errors of each part.
Asked understood(AskedWords& options);

}  // namespace mlenv::cli
