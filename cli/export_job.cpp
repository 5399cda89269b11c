// `mlenv export slurm|ssh|mpi`: a job as a script (runner/export/job_script.hpp), and the folder
// beside it.
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "base/json.hpp"
#include "cli/answer_file.hpp"
#include "cli/run_job.hpp"
#include "cli/usage.hpp"
#include "images/archive.hpp"
#include "recipes/text.hpp"
#include "runner/export/job_script.hpp"
#include "runner/launch/hosts.hpp"
#include "runner/launch/slurm_script.hpp"
#include "runner/local/job.hpp"
#include "runner/node/program.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::cli {
namespace {

using Form = job::JobScript::Form;

/// What a script is made of.
struct Exported {
  job::JobScript script;
  fs::path program;  ///< mlenv-node, where the script needs it
};

/// `train.sh` has `train.d`.
std::string folder_name(const ScriptChoice& choice, const std::string& name) {
  const fs::path file = choice.file.filename();
  return (choice.file.empty() ? job::slurm_name(name) : file.stem().string()) + ".d";
}

Exported exported(Ui& ui, PreparedJob& job) {
  const ScriptChoice choice = *job.choice.script;
  Exported made;
  job::JobScript& script = made.script;
  script.form = choice.form;
  script.with = choice.with;
  if (!job.choice.hosts.empty()) {
    script.hosts = job::hosts_of(job.choice.hosts);
    job.choice.job.ranks_per_node = job::ranks_in_slots(script.hosts, job.choice.ranks);
  }
  script.name = job.choice.job.name.empty() ? job.start.image.name : job.choice.job.name;
  script.digest = job.image.digest().str();
  script.blobs = {script.digest, Digest::of(job.image.config).str()};
  for (const Layer& layer : job.image.layers) script.blobs.push_back(layer.blob.digest.str());
  script.site = job.choice.site;
  script.after = job.choice.after;
  if (const auto& switches = job.start.deterministic) script.seed = switches->seed;
  job::DrivePlan plan = drive_plan(ui, job);
  script.job = std::move(plan.job);
  script.job.options = plan.run.options;
  script.argv = plan.run.argv;
  script.env = plan.run.env;
  script.mounts = plan.run.mounts;
  script.workdir = plan.run.workdir;
  script.code_target = project_folder(plan.run);
  script.code = plan.code_digest;
  script.gpus = plan.gpus;
  script.files = folder_name(choice, script.name);
  if (script.with == job::JobScript::With::builtin) {
    made.program = job::node_program();
    script.program = Digest::of(read_file(made.program)).hex();
  }
  return made;
}

// Their owner's alone: what runs, and with what, is nobody else's affair.
constexpr mode_t kProgram = 0700;
constexpr mode_t kPrivate = 0600;

void write_blob(const Store& store, const Digest& digest, const fs::path& path) {
  const std::unique_ptr<Source> source = store.open(digest);
  AtomicFile file{path, kPrivate};
  copy(*source, file);
  file.commit();
}

/// What a script does not hold is told to who wrote it on the command line.
void say_secrets(const Ui& ui, const job::JobScript& script) {
  std::vector<std::string> names;
  for (const std::string& one : script.env) {
    if (job::holds_secret(one)) names.push_back("`" + one.substr(0, one.find('=')) + "`");
  }
  if (!names.empty()) {
    ui.say(
        fmt::format("mlenv: the script does not hold the value of {}: set it where the script is "
                    "started",
                    join(names, ", ")));
  }
  if (without_secrets(script.argv) != script.argv) {
    ui.say(
        "mlenv: the script holds the command, and that what looks like a secret: give it by a "
        "variable "
        "(`-e NAME`) instead");
  }
}

/// Beside the script.
void write_files(Ui& ui, const Exported& made, const Image& image, const fs::path& folder) {
  make_folders(folder);
  fs::permissions(folder, fs::perms::owner_all);
  // None of it is code, should the folder lie in the project.
  write_answer_file(folder / ".gitignore", "*\n", kPrivate);
  if (!made.program.empty()) {
    const fs::path program = folder / "mlenv-node";
    write_answer_file(program, read_file(made.program), kProgram);
  }
  if (made.script.with != job::JobScript::With::pyxis) {
    const Output output{Output::Format::oci, folder / "image"};
    output.check();  // somebody's folder of that name stays as it is
    write_output(ui.store(), image, Reference::parse("image:latest"), output, ui.progress());
  }
  if (made.script.code) {
    write_blob(ui.store(), Digest::parse(*made.script.code), folder / "code.tar");
  }
}

constexpr std::string_view kForms[] = {"slurm", "ssh", "mpi"};

}  // namespace

int export_job(Ui& ui, PreparedJob job) {
  const ScriptChoice choice = *job.choice.script;
  std::error_code unknown;
  if (!choice.file.empty() && !choice.force &&
      fs::exists(fs::symlink_status(choice.file, unknown))) {
    throw usage_error("file-exists", "there is a `{}` already", choice.file.string())
        .hint("--force writes over it, -o names another");
  }
  if (!choice.file.empty()) require_file_place(choice.file);
  const Exported made = exported(ui, job);
  const std::string text = job::job_script(made.script);
  say_secrets(ui, made.script);
  std::vector<std::string> files;
  if (!choice.file.empty()) {
    const fs::path folder = fs::absolute(choice.file).parent_path() / made.script.files;
    write_files(ui, made, job.image, folder);
    write_answer_file(choice.file, text, kProgram);
    files = {choice.file.string(), (choice.file.parent_path() / made.script.files).string()};
  }
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.export/1"},
                         {"kind", std::string(kForms[static_cast<int>(choice.form)])},
                         {"files", files},
                         {"text", files.empty() ? nlohmann::json(text) : nlohmann::json()}}));
  } else if (files.empty()) {
    ui.answer_exactly(text.substr(0, text.size() - 1));
  } else {
    for (const std::string& file : files) ui.answer_exactly(file);
  }
  return 0;
}

}  // namespace mlenv::cli
