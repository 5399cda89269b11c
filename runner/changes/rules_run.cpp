// What a run was asked to do: code, command, mounts.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/text.hpp"
#include "runner/changes/rules.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::changes {
namespace {

using Argv = std::vector<std::string>;

std::string last_name(const std::string& path) { return fs::path(path).filename().string(); }

// --- Code

std::string code_text(const CodeState& code) {
  constexpr std::size_t kBrief = 12;
  std::string text = code.commit->substr(0, kBrief);
  if (code.changed && !code.changed->empty()) {
    text += fmt::format(" and changes in {}", listed(*code.changed, 3));
  }
  return text;
}

// --- Arguments

/// Words of an option's name that say that it names an output, or how much is told.
constexpr std::array kOutputWords = std::to_array<std::string_view>(
    {"out",  "output",     "log",   "logs",    "logging", "logdir",     "outdir",
     "name", "run",        "id",    "tag",     "tags",    "wandb",      "tensorboard",
     "tb",   "verbose",    "quiet", "port",    "save",    "checkpoint", "checkpoints",
     "ckpt", "experiment", "exp",   "project", "comment", "report"});

bool names_output(std::string_view option) {
  std::string word;
  const auto is_one = [&] {
    return std::find(kOutputWords.begin(), kOutputWords.end(), word) != kOutputWords.end();
  };
  for (const char c : option) {
    if (is_alphanumeric(c)) {
      word += to_lower(c);
    } else if (is_one()) {
      return true;
    } else {
      word.clear();
    }
  }
  return is_one();
}

struct Argument {
  std::string option;  ///< `--lr`, or `argument 3`
  std::string text;    ///< as it is shown: `--lr 0.1`
  friend bool operator==(const Argument&, const Argument&) = default;
};

bool is_option(const std::string& word) {
  const bool is_number = word.size() > 1 && (is_digit(word[1]) || word[1] == '.');
  return word.size() > 1 && word.front() == '-' && !is_number;
}

/// `--lr 0.1`, `--lr=0.1` and words alone: with their option each, so that order does not count.
std::vector<Argument> arguments_of(const Argv& argv) {
  std::vector<Argument> out;
  std::size_t alone = 0;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (!is_option(word)) {
      out.push_back({"argument " + std::to_string(++alone), word});
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      out.push_back(
          {word.substr(0, equals), word.substr(0, equals) + ' ' + word.substr(equals + 1)});
    } else if (i + 1 < argv.size() && !is_option(argv[i + 1])) {
      out.push_back({word, word + ' ' + argv[++i]});
    } else {
      out.push_back({word, word});
    }
  }
  return out;
}

/// Those that the other list has not got.
std::vector<Argument> arguments_only_in(const std::vector<Argument>& some,
                                        std::vector<Argument> others) {
  std::vector<Argument> out;
  for (const Argument& one : some) {
    const auto same = std::find(others.begin(), others.end(), one);
    if (same == others.end()) {
      out.push_back(one);
    } else {
      others.erase(same);
    }
  }
  return out;
}

bool is_masked(const Argument& one) { return one.text.find(kMasked) != std::string::npos; }

struct SortedArguments {
  Listing outputs;
  Listing others;

  void add(const Argument& one, std::vector<std::string> Listing::*side) {
    ((names_output(one.option) ? outputs : others).*side).push_back(one.text);
  }
};

void compare_arguments(Compared& here, const Argv& from, const Argv& to) {
  const std::vector<Argument> before = arguments_of(from);
  const std::vector<Argument> after = arguments_of(to);
  for (const Argument& one : before) {
    if (!is_masked(one) || std::find(after.begin(), after.end(), one) == after.end()) continue;
    const std::string why = "records do not keep secrets";
    here.leave_open("value of " + one.option, why, why);
  }
  SortedArguments sorted;
  for (const Argument& one : arguments_only_in(before, after)) sorted.add(one, &Listing::from);
  for (const Argument& one : arguments_only_in(after, before)) sorted.add(one, &Listing::to);
  if (!sorted.others.empty()) here.find("arguments", sorted.others.said());
  if (!sorted.outputs.empty()) here.find("output-arguments", sorted.outputs.said());
}

std::optional<std::string> shown_command(const Argv& argv) {
  return argv.empty() ? "the image's own command" : join(argv, " ");
}

// --- Mounts

const RecordedMount* mount_at(const RunStart& start, const std::string& target) {
  const auto found = std::find_if(start.mounts.begin(), start.mounts.end(),
                                  [&](const RecordedMount& one) { return one.target == target; });
  return found == start.mounts.end() ? nullptr : &*found;
}

std::string recorded_mount_text(const RecordedMount& mount) {
  return fmt::format("{} at {}{}", mount.source, mount.target,
                     mount.read_only ? ", read-only" : "");
}

struct SortedMounts {
  Listing gone;
  Listing other_data;
  Listing other_place;

  void add(const RecordedMount& from, const RecordedMount& to) {
    if (from.source != to.source) {
      // What is written to is the run's own. By the same name elsewhere lies mostly the same.
      const bool output = !from.read_only && !to.read_only && names_output(last_name(to.target));
      const bool same_name = last_name(from.source) == last_name(to.source);
      Listing& listing = output || same_name ? other_place : other_data;
      listing.from.push_back(recorded_mount_text(from));
      listing.to.push_back(recorded_mount_text(to));
    } else if (from.read_only != to.read_only) {
      gone.from.push_back(recorded_mount_text(from));
      gone.to.push_back(recorded_mount_text(to));
    }
  }
};

std::string device_word(const RunStart& start) {
  return start.devices.empty() ? "none" : join(start.devices, " ");
}

void detail(Compared& here, std::string what, const std::optional<std::string>& from,
            const std::optional<std::string>& to) {
  if (from != to) here.find("run-detail", {from, to, {}, std::move(what)});
}

std::string end_text(const RunRecord& run) {
  if (!run.end) return run.state;
  std::string text = run.state;
  if (run.state == "failed") text += fmt::format(" ({})", run.end->exit_code);
  if (run.end->signal) text += fmt::format(" (signal {})", *run.end->signal);
  return fmt::format("{}, {:.1f} s", text, run.end->seconds);
}

}  // namespace

void code(Compared& here) {
  if (here.from_run() == nullptr) return;
  const std::optional<CodeState>& before = here.from_run()->code;
  const std::optional<CodeState>& after = here.to_run()->code;
  const std::string why = "the record does not hold the state of the code";
  if (!before || !after) {
    return here.leave_open("code", before ? std::nullopt : std::optional(why),
                           after ? std::nullopt : std::optional(why));
  }
  if (!here.know("commit of the code", before->commit, after->commit)) return;
  if (before->branch && after->branch) {
    detail(here, "branch", *before->branch, *after->branch);
  }
  if (*before->commit != *after->commit) {
    Said said{code_text(*before), code_text(*after)};
    if (const auto* files = here.code_files(); files != nullptr && !files->empty()) {
      said.effect = fmt::format("it does something else; between the commits {} changed: {}",
                                counted(files->size(), "file"), listed(*files, 8));
    } else if (files != nullptr && before->changed_digest && after->changed_digest &&
               *before->changed_digest == *after->changed_digest) {
      said.weight = Weight::note;
      said.effect = "the same files of the project in both commits";
    }
    here.find("code", std::move(said));
  } else if (here.know("uncommitted changes of the code", before->changed_digest,
                       after->changed_digest) &&
             *before->changed_digest != *after->changed_digest) {
    here.find("code", {code_text(*before), code_text(*after), {}, "code that is not committed"});
  }
}

void command(Compared& here) {
  if (here.from_run() == nullptr || are_of_one_matrix(here)) return;
  const Argv& from = here.from_run()->start.argv;
  const Argv& to = here.to_run()->start.argv;
  const bool same_program = !from.empty() && !to.empty() && from.front() == to.front();
  if (!same_program) {
    if (from != to) here.find("program", {shown_command(from), shown_command(to)});
    return;
  }
  // `python train.py`: the script is the program.
  const auto script = [](const Argv& argv) {
    return argv.size() > 1 && !is_option(argv[1]) ? argv[1] : std::string{};
  };
  if (script(from) != script(to)) {
    here.find("program",
              {join({from.front(), script(from)}, " "), join({to.front(), script(to)}, " ")});
  }
  const auto rest = [&](const Argv& argv) {
    Argv out = argv;
    if (!script(argv).empty()) out.erase(out.begin() + 1);
    return out;
  };
  compare_arguments(here, rest(from), rest(to));
}

void mounts(Compared& here) {
  if (here.from_run() == nullptr) return;
  const RunStart& from = here.from_run()->start;
  const RunStart& to = here.to_run()->start;
  SortedMounts sorted;
  for (const RecordedMount& one : from.mounts) {
    if (is_own_folder(here, one.target)) continue;
    if (const RecordedMount* other = mount_at(to, one.target)) {
      sorted.add(one, *other);
    } else {
      sorted.gone.from.push_back(recorded_mount_text(one));
    }
  }
  for (const RecordedMount& one : to.mounts) {
    if (mount_at(from, one.target) == nullptr) sorted.gone.to.push_back(recorded_mount_text(one));
  }
  if (!sorted.gone.empty()) here.find("mounts", sorted.gone.said());
  if (!sorted.other_data.empty()) here.find("data-mount", sorted.other_data.said());
  if (!sorted.other_place.empty()) here.find("data-path", sorted.other_place.said());
}

std::string vm_text(const std::optional<VmUse>& vm) {
  if (!vm) return "none";
  return fmt::format("{}, Linux {}, {} CPUs, {} MiB", vm->machine, vm->kernel, vm->cpus,
                     vm->memory_bytes >> 20U);
}

void virtual_machine(Compared& here) {
  const std::optional<VmUse>& from = here.from_run()->vm;
  const std::optional<VmUse>& to = here.to_run()->vm;
  const auto is_emulated = [](const std::optional<VmUse>& vm) {
    return vm && vm->accelerator == "tcg";
  };
  const auto word = [&](const std::optional<VmUse>& vm) {
    return is_emulated(vm) ? "emulated" : "not emulated";
  };
  if (is_emulated(from) != is_emulated(to)) here.find("emulation", {word(from), word(to)});
  if (vm_text(from) != vm_text(to)) here.find("vm", {vm_text(from), vm_text(to)});
}

void run_settings(Compared& here) {
  if (here.from_run() == nullptr) return;
  const RunStart& from = here.from_run()->start;
  const RunStart& to = here.to_run()->start;
  if (from.workdir != to.workdir) here.find("workdir", {from.workdir, to.workdir});
  virtual_machine(here);
  if (from.runtime != to.runtime) here.find("runtime", {from.runtime, to.runtime});
  if (from.mlenv != to.mlenv) here.find("mlenv", {from.mlenv, to.mlenv});
  if (from.checked != to.checked) {
    const auto word = [](bool checked) { return checked ? "asked" : "left out"; };
    here.find("not-checked", {word(from.checked), word(to.checked)});
  }
  if (from.devices.size() != to.devices.size()) {
    here.find("gpu-count",
              {device_word(from), device_word(to),
               to.devices.size() < from.devices.size() ? Weight::breaks : Weight::results,
               "devices that the run was given"});
  } else {
    detail(here, "devices", device_word(from), device_word(to));
  }
  detail(here, "id", from.id, to.id);
  detail(here, "host", from.host, to.host);
  detail(here, "boot", from.boot_id, to.boot_id);
  detail(here, "started", from.started, to.started);
  detail(here, "project folder", from.project, to.project);
  detail(here, "image's name", from.image.name, to.image.name);
}

void outcome(Compared& here) {
  if (here.from_run() == nullptr) return;
  const RunRecord& from = *here.from_run();
  const RunRecord& to = *here.to_run();
  const bool other_end =
      from.state != to.state || (from.end && to.end && from.end->exit_code != to.end->exit_code);
  const bool differs = other_end || here.symptom() == Symptom::slower;
  if (differs && !here.differ()) {
    here.find("outcome", {end_text(from), end_text(to)});
  } else {
    detail(here, "end", end_text(from), end_text(to));
  }
}

}  // namespace mlenv::changes
