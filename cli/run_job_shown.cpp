#include "cli/run_job_shown.hpp"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/record_json.hpp"
#include "cli/run_job_data.hpp"
#include "cli/run_job_matrix.hpp"
#include "cli/run_record.hpp"
#include "recipes/text.hpp"
#include "runner/job/words.hpp"
#include "runner/record/run_record.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::cli {
namespace {

/// The nearest to what a person would write.
std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:.6g} s", std::chrono::duration<double>(time).count());
}

std::string variable_text(const RecordedVariable& one) {
  return one.name + "=" + one.value.value_or(std::string(kMasked));
}

/// Variables of the person's come over what ranks are told.
void put_over(const std::vector<RecordedVariable>& own, std::vector<std::string>& env) {
  for (const RecordedVariable& one : own) {
    const std::string begin = one.name + "=";
    const auto at = std::find_if(env.begin(), env.end(), [&](const std::string& variable) {
      return variable.starts_with(begin);
    });
    if (at == env.end()) {
      env.push_back(variable_text(one));
    } else {
      *at = variable_text(one);
    }
  }
  std::sort(env.begin(), env.end());
}

std::vector<RecordedMount> mounts_shown(const PreparedJob& job) {
  std::vector<RecordedMount> mounts = job.start.mounts;
  if (const auto& one = job.choice.job.checkpoints) {
    mounts.push_back(recorded_mount(*one));
  }
  return mounts;
}

std::string life_text(const job::Job& job) {
  std::vector<std::string> parts;
  if (job.deadline) parts.push_back("ended after " + seconds_text(*job.deadline));
  parts.push_back(seconds_text(job.grace) + " from SIGTERM to SIGKILL");
  if (job.restarts > 0) parts.push_back(counted(job.restarts, "restart"));
  if (job.stall_timeout) {
    parts.push_back("failed after a stall of " + seconds_text(*job.stall_timeout));
  }
  return join(parts, ", ");
}

std::string nodes_shown(const job::Job& job) {
  return fmt::format("{}, {} on each, {}, {}", nodes_text(job.nodes),
                     counted(job.ranks_per_node, "rank"), job::name_of(job.strategy),
                     job::name_of(job.framework));
}

std::string value_text(const std::vector<std::string>& env) {
  std::string text;
  for (const std::string& one : env) text += "\n      " + printable(one);
  return text;
}

/// Of a matrix, each of which would be such a job; as JSON null where there is none.
nlohmann::json show_variations(const Ui& ui, const PreparedJob& job) {
  nlohmann::json all;
  if (!job.matrix) return all;
  for (const ShownVariation& one : shown_variations(job)) {
    if (!ui.options.json) {
      ui.answer(fmt::format("variation {}, {}: {}", one.number, one.values,
                            printable(join(one.argv, " "))));
    }
    all.push_back({{"number", one.number}, {"argv", one.argv}});
  }
  return all;
}

}  // namespace

std::vector<std::string> summary_lines(const Ui& ui, const PreparedJob& job) {
  const RunStart& start = job.start;
  const std::vector<std::string> argv = without_secrets(job.run.argv);
  std::vector<std::string> lines;
  const auto add = [&](std::string_view label, const std::string& text) {
    lines.push_back(fmt::format("{:<9} {}", label, printable(text)));
  };
  add("image", fmt::format("{}  {}", start.image.name, job.image.digest().str()));
  if (const auto from = pulled_from(job.choice)) add("layers", "nodes fetch them from " + *from);
  add("command", argv.empty() ? "the image's own" : join(argv, " "));
  if (start.workdir) add("workdir", *start.workdir);
  add("nodes", nodes_shown(job.choice.job));
  if (!job.gpus.empty()) add("gpus", job.gpus);
  for (const RecordedVariable& one : start.env) add("env", variable_text(one));
  for (const RecordedMount& one : mounts_shown(job)) {
    add("mount", mount_text(one));
  }
  if (const std::string options = options_text(start.options); !options.empty()) {
    add("options", options);
  }
  add("life", life_text(job.choice.job));
  add("code", code_of(ui, job).value_or("none"));
  return lines;
}

nlohmann::json summary_json(const Ui& ui, const PreparedJob& job) {
  const RunStart& start = job.start;
  const job::Job& what = job.choice.job;
  const auto seconds = [](const std::optional<std::chrono::milliseconds>& time) {
    return time ? nlohmann::json(std::chrono::duration<double>(*time).count()) : nlohmann::json();
  };
  return {{"name", start.image.name},
          {"pull_from", RecordWriter::written(pulled_from(job.choice))},
          {"argv", without_secrets(job.run.argv)},
          {"workdir", RecordWriter::written(start.workdir)},
          {"least_nodes", what.nodes.least},
          {"most_nodes", what.nodes.most},
          {"ranks_per_node", what.ranks_per_node},
          {"gpus", job.gpus},
          {"env", RecordWriter::written(start.env)},
          {"mounts", RecordWriter::written(mounts_shown(job))},
          {"options", options_text(start.options)},
          {"deadline_seconds", seconds(what.deadline)},
          {"grace_seconds", seconds(what.grace)},
          {"restarts", what.restarts},
          {"stall_seconds", seconds(what.stall_timeout)},
          {"code", RecordWriter::written(code_of(ui, job))}};
}

int show_plan(const Ui& ui, const PreparedJob& job, const job::NodeStarter& starter) {
  if (!ui.options.json) say_data(ui, job.data);
  std::vector<job::Place> places;
  const std::vector<job::NodeOffer> offers = starter.offers();
  const std::size_t count = std::min<std::size_t>(offers.size(), job.choice.job.nodes.most);
  for (std::size_t i = 0; i < count; ++i) {
    const job::NodeOffer& offer = offers[i];
    job::Place place;
    place.name = offer.name;
    place.address =
        offer.address.empty() ? fmt::format("ADDRESS-OF-{}", offer.name) : offer.address;
    place.interface = !job.choice.job.interface.empty() ? job.choice.job.interface
                      : !offer.interface.empty()        ? offer.interface
                                                        : "INTERFACE";
    const std::size_t ports = job::ports_needed(job.choice.job);
    for (std::size_t port = 0; port < ports; ++port) {
      place.ports.push_back(static_cast<std::uint16_t>(port + 1));
    }
    places.push_back(std::move(place));
  }
  const job::JobPlan plan = job::plan(job.choice.job, places, "JOB", 0);
  if (!ui.options.json) {
    for (const std::string& line : summary_lines(ui, job)) ui.answer(line);
  }
  const nlohmann::json variations = show_variations(ui, job);
  for (const std::string& id : job.start.after) {
    if (!ui.options.json) ui.answer(fmt::format("after run {}, once it has ended well", id));
  }
  const std::optional<RecordedDeterminism>& switches = job.start.deterministic;
  if (switches && !ui.options.json) {
    ui.answer(
        fmt::format("deterministic, seed {}: variables of docs/reproduce.md", switches->seed));
  }
  nlohmann::json ranks = nlohmann::json::array();
  for (job::Rank rank : plan.ranks) {
    put_over(job.start.env, rank.env);
    const std::string& node = places.at(rank.node).name;
    if (ui.options.json) {
      ranks.push_back({{"rank", rank.rank},
                       {"node", node},
                       {"local_rank", rank.local_rank},
                       {"role", rank.role},
                       {"env", rank.env}});
      continue;
    }
    ui.answer(fmt::format("rank {} on {}, {}{}", rank.rank, node, rank.role, value_text(rank.env)));
  }
  if (ui.options.json) {
    ui.answer(canonical(
        {{"schema", "mlenv.job-plan/1"},
         {"engine", job.choice.engine},
         {"image", job.image.digest().str()},
         {"strategy", job::name_of(job.choice.job.strategy)},
         {"framework", job::name_of(job.choice.job.framework)},
         {"argv", job.run.argv},
         {"data", data_json(job.data)},
         {"variations", variations},
         {"after", job.start.after},
         {"deterministic", switches ? nlohmann::json{{"seed", switches->seed}} : nlohmann::json()},
         {"job", summary_json(ui, job)},
         {"ranks", std::move(ranks)}}));
  }
  return 0;
}

}  // namespace mlenv::cli
