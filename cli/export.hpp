#pragma once
// `mlenv export`, and what ssh calls of it.
#include <memory>
#include <string>

#include "cli/ui.hpp"

namespace mlenv::cli {

Action declare_export(CLI::App& app);
/// What an entry of `export ssh-config` has ssh run; no user's command.
Action declare_ssh_proxy(CLI::App& app);

/// Declares `ssh-config` below `mlenv export`; `action` becomes it when it is chosen.
void declare_export_ssh(CLI::App& app, const std::shared_ptr<Action>& action);

/// The same for a script of a job (cli/run.cpp): `form` is slurm, ssh or mpi.
void declare_export_job(CLI::App& app, const std::string& form,
                        const std::shared_ptr<Action>& action);

}  // namespace mlenv::cli
