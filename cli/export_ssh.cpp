#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "cli/command_tree.hpp"
#include "cli/export.hpp"
#include "cli/running.hpp"
#include "cli/settings.hpp"
#include "recipes/init/build_commands.hpp"
#include "runner/export/ssh.hpp"
#include "runner/local/exec_client.hpp"

namespace mlenv::cli {
namespace {

constexpr std::chrono::seconds kAnswerTime{60};

struct ExportSshWords {
  std::string run;
  std::string via;
};

/// $XDG_STATE_HOME/mlenv/ssh, else ~/.local/state/mlenv/ssh.
fs::path keys_folder() {
  if (const auto folder = variable("XDG_STATE_HOME")) return fs::absolute(*folder) / "mlenv/ssh";
  if (const auto home = variable("HOME")) return fs::path(*home) / ".local/state/mlenv/ssh";
  throw usage_error("bad-setting", "there is no home folder").hint("set XDG_STATE_HOME");
}

/// Name of the run's user, once it is known that there is a server.
std::string user_in(const std::string& id) {
  mlenv::Command command{Purpose{"own-exec"}};
  command.argv = {own_executable().string(),
                  "exec",
                  id,
                  "/bin/sh",
                  "-c",
                  "[ -x /usr/sbin/sshd ] || exit 3\n"
                  "if [ \"$(id -u)\" = 0 ]; then\n"
                  "  [ -d /run/sshd ] || [ -w /run ] || exit 4\n"
                  "  read -r _ _ ids </proc/self/uid_map\n"
                  "  [ \"$ids\" != 1 ] || [ -w /etc/passwd ] || exit 5\n"
                  "fi\n"
                  "id -un"};
  const Captured answer = run_captured(command, kAnswerTime);
  constexpr int kAbsent = 3;
  constexpr int kNoFolder = 4;
  constexpr int kNoUser = 5;
  if (answer.exit.code == kNoFolder || answer.exit.code == kNoUser) {
    const bool folder = answer.exit.code == kNoFolder;
    throw failure("ssh-failed", "run `{}` has nowhere to write what an SSH server needs", id)
        .because(fmt::format("its image cannot be written (`--read-only`), and `{}` is part of it",
                             folder ? "/run" : "/etc/passwd"))
        .hint(folder ? "start it anew with `--tmpfs /run`, or without `--read-only`"
                     : "start it anew without `--read-only`");
  }
  if (answer.exit.code == 0) return ssh_user(std::string(trim(answer.out)));
  if (answer.exit.code != kAbsent) {
    throw failure("ssh-failed", "run `{}` does not say whether it has an SSH server", id)
        .because(std::string(trim(answer.err)));
  }
  throw failure("no-sshd", "run `{}` has no SSH server", id)
      .because("there is no `/usr/sbin/sshd` in it")
      .hint("add it to the recipe and start the run anew: `mlenv add --system openssh-server`");
}

/// `%` is ssh's own.
std::string for_ssh(const std::string& command) {
  std::string text;
  for (const char c : command) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

std::string proxy_command(const ExportSshWords& options, const std::string& run) {
  std::string command = shell_quoted(own_executable().string()) + " ssh-proxy " + run;
  // Whoever calls ssh may have other variables: an editor that a desktop started.
  for (const char* name : {"MLENV_STORE", "XDG_DATA_HOME", "XDG_STATE_HOME"}) {
    const std::optional<std::string> value = variable(name);
    if (value) command = fmt::format("{}={} {}", name, shell_quoted(*value), command);
  }
  if (command.find('=') != std::string::npos) command = "env " + command;
  if (!options.via.empty()) {
    command = fmt::format("ssh {} {}", shell_quoted(options.via), shell_quoted(command));
  }
  return for_ssh(command);
}

int config_command(const ExportSshWords& options, Ui& ui) {
  const RunRecords records = run_records();
  const std::string id = records.find(options.run);
  require_running(records, id);
  const SshKeys keys = provide_ssh_keys(keys_folder());
  SshEntry entry;
  entry.run = records.read_brief(id).start.name.value_or(id);
  entry.user = user_in(id);
  entry.command = proxy_command(options, entry.run);
  if (options.via.empty()) entry.keys = &keys;
  const std::string text = render_ssh_entry(entry);
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.export/1"},
                         {"kind", "ssh-config"},
                         {"files", nlohmann::json::array()},
                         {"text", text}}));
  } else {
    ui.answer_exactly(trim(text));
    ui.say(fmt::format("in ~/.ssh/config it makes `ssh mlenv-{}` work", entry.run));
  }
  return 0;
}

/// Whoever may come in to this machine by ssh may go on into the run, which is theirs.
std::string own_authorized_keys() {
  const std::optional<std::string> home = variable("HOME");
  if (!home) return {};
  return read_file_if_exists(fs::path(*home) / ".ssh/authorized_keys").value_or("");
}

int proxy(const std::string& run) {
  const RunRecords records = run_records();
  const std::string id = records.find(run);
  require_running(records, id);
  const SshKeys keys = provide_ssh_keys(keys_folder());
  return exec_in_run(records.folder_of(id), id, sshd_request(keys, own_authorized_keys()), true)
      .code;
}

}  // namespace

void declare_export_ssh(CLI::App& app, const std::shared_ptr<Action>& action) {
  auto options = std::make_shared<ExportSshWords>();
  CLI::App* config =
      app.add_subcommand("ssh-config", "an entry of ~/.ssh/config for a run that goes on");
  take_word_of(
      config->add_option("RUN", options->run, "an id, its beginning or end, or a name")->required(),
      WordKind::running);
  config
      ->add_option("--via", options->via,
                   "for another machine, which reaches this one by `ssh HOST`")
      ->type_name("HOST");
  config->footer("example: mlenv export ssh-config train >>~/.ssh/config");
  config->callback([=] { *action = [options](Ui& ui) { return config_command(*options, ui); }; });
}

Action declare_ssh_proxy(CLI::App& app) {
  auto run = std::make_shared<std::string>();
  app.add_option("RUN", *run, "a run that goes on")->required();
  return [run](Ui& /*ui*/) { return proxy(*run); };
}

}  // namespace mlenv::cli
