#include "runner/compare/snapshot.hpp"

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <set>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "runner/compare/records.hpp"
#include "runner/engine/engine.hpp"
#include "runner/engine/engine_image.hpp"
#include "runner/record/kept_layers.hpp"
#include "runner/runtime_variables.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kWrite = "head -c 33554432 /dev/urandom >/var/tmp/mlenv-compare && echo";
constexpr const char* kSnapshotTime = "snapshot.time";
constexpr const char* kSnapshotSize = "snapshot.size";
constexpr milliseconds kMostAnswerTime{30000};
constexpr milliseconds kAnswerMoment{10000};
constexpr std::string_view kSnapshots = "dev.mlenv.compare";  // name of their label

Found not_found(const std::string& why) {
  Found found;
  found.whys[kSnapshotTime] = found.whys[kSnapshotSize] = why;
  return found;
}

/// By the run that ends: what it wrote stays where it is.
Found keep_layer(const Bench& bench, ActiveSide side, milliseconds deadline, StopSignals& signals) {
  side.options.emplace_back("--keep");
  const Command command = command_on(bench, side, {Which::image, {"sh", "-c", kWrite}});
  const Launched launched = launch(minder_of(bench, side), command, deadline, signals);
  const RunRecords records(runs_folder(bench.store));
  const KeptLayers layers(bench.store);
  const std::optional<RunRecord> record = newest_record(records, bench.terms.label);
  Found found;
  if (launched.stopped || launched.timed_out || launched.exit.code != 0 || !launched.last_line) {
    found = not_found(why_of(launched, deadline));
  } else if (!record || !record->start.layer) {
    found = not_found("the run left no record of what it kept");
  } else {
    found.values[kSnapshotTime] = launched.seconds - *launched.last_line;
    found.values[kSnapshotSize] = static_cast<double>(layers.size_bytes(record->start.layer->id));
    found.texts[kSnapshotTime] = "with the end of the run";
  }
  found.stopped = launched.stopped;
  found.timed_out = launched.timed_out;
  if (record) (void)records.remove(record->start.id);
  (void)layers.remove_unnamed();
  return found;
}

/// Commands of an engine, which end with the time that there is, or when a signal came.
class EngineCommands {
 public:
  EngineCommands(const Bench& bench, const ContainerEngine& engine, milliseconds deadline,
                 StopSignals& signals)
      : minder_(bench.minders->runs),
        engine_(engine),
        until_(steady_clock::now() + deadline),
        signals_(signals) {}

  Launched ask(std::vector<std::string> words) {
    words.insert(words.begin(), engine_.program);
    Command command{Purpose{"engine-question"}};
    command.env = runtime_variables(Starts::engine);
    command.argv = std::move(words);
    const auto left = std::chrono::duration_cast<milliseconds>(until_ - steady_clock::now());
    const milliseconds deadline = std::clamp(left, milliseconds(0), kMostAnswerTime);
    Launched answer = launch(minder_, command, deadline, signals_);
    stopped_ |= answer.stopped;
    timed_out_ |= answer.timed_out;
    if (why_.empty() && !worked(answer)) {
      why_ = fmt::format("{} {}: {}", engine_.name, command.argv.at(1), why_of(answer, deadline));
    }
    return answer;
  }
  static bool worked(const Launched& answer) {
    return !answer.stopped && !answer.timed_out && answer.exit.code == 0;
  }
  /// Of the first one that did not work; empty: all did.
  const std::string& why() const { return why_; }
  /// `found`, with what ended it.
  Found with_end(Found found) const {
    found.stopped = stopped_;
    found.timed_out = timed_out_;
    return found;
  }

 private:
  const Minder& minder_;
  const ContainerEngine& engine_;
  steady_clock::time_point until_;
  StopSignals& signals_;
  bool stopped_ = false;
  bool timed_out_ = false;
  std::string why_;
};

std::set<std::string> distinct_lines(std::string_view text) {
  std::set<std::string> lines;
  for (const std::string_view one : split(text, '\n')) {
    if (!trim(one).empty()) lines.emplace(trim(one));
  }
  return lines;
}

/// That it fails is no reason to lose a figure: the next comparison tries again.
void remove_image(const ContainerEngine& engine, const std::string& image) {
  try {
    (void)ask(engine, {"image", "rm", "--force", image}, kAnswerMoment);
  } catch (const Error& error) {
    log::debug("`{}` stays for now: {}", image, error.what());
  }
}

std::set<std::string> containers_of(EngineCommands& engine) {
  return distinct_lines(
      engine.ask({"ps", "--quiet", "--no-trunc", "--filter", "label=dev.mlenv.run"}).out);
}

std::optional<double> image_bytes(EngineCommands& engine, const std::string& image) {
  const Launched answer = engine.ask({"image", "inspect", "--format", "{{.Size}}", image});
  const std::string_view text = trim(answer.out);
  double bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (!EngineCommands::worked(answer) || error != std::errc{}) return std::nullopt;
  return bytes;
}

/// Under a name and a label, so that it can be found again whatever ends us meanwhile.
Found commit(const Bench& bench, EngineCommands& engine, const std::string& container,
             const std::string& image) {
  const Launched answer =
      engine.ask({"commit", "--change", "LABEL " + snapshots_label(bench.store), container, image});
  if (!EngineCommands::worked(answer)) return not_found(engine.why());
  Found found;
  found.values[kSnapshotTime] = answer.seconds;
  const auto before = image_bytes(engine, engine_image_name(Digest::parse(bench.terms.image)));
  const auto after = image_bytes(engine, image);
  if (before && after) found.values[kSnapshotSize] = *after - *before;
  return found;
}

/// Of a container that goes on meanwhile.
Found commit_container(const Bench& bench, const ActiveSide& side, milliseconds deadline,
                       StopSignals& signals) {
  const ContainerEngine engine = find_engine(std::string(side.spec->id));
  EngineCommands asked(bench, engine, deadline, signals);
  const std::set<std::string> before = containers_of(asked);
  if (!asked.why().empty()) return asked.with_end(not_found(asked.why()));
  const std::string script = std::string(kWrite) + " && read line";
  Waiting waiting(minder_of(bench, side),
                  command_on(bench, side, {Which::image, {"sh", "-c", script}}));
  if (!waiting.ready(deadline, signals)) {
    Found found = not_found("its container did not start");
    found.stopped = signals.came() != 0;
    return found;
  }
  std::vector<std::string> fresh;
  for (const std::string& one : containers_of(asked)) {
    if (!before.contains(one)) fresh.push_back(one);
  }
  const std::string image =
      "localhost/mlenv-compare:" + bench.terms.label.substr(bench.terms.label.find('=') + 1);
  Found found;
  if (!asked.why().empty()) {
    found = not_found(asked.why());
  } else if (fresh.size() != 1) {
    found = not_found("other runs began at the same time");
  } else {
    found = commit(bench, asked, fresh.front(), image);
    remove_image(engine, image);
  }
  found = asked.with_end(std::move(found));
  waiting.end(found.stopped ? milliseconds(0) : kMostAnswerTime);
  return found;
}

}  // namespace

Found run_snapshot(const Bench& bench, const ActiveSide& side, milliseconds deadline,
                   StopSignals& signals) {
  return side.spec->id == "builtin" ? keep_layer(bench, side, deadline, signals)
                                    : commit_container(bench, side, deadline, signals);
}

std::string snapshots_label(const fs::path& store) {
  const std::string host = std::string(trim(read_file("/proc/sys/kernel/hostname")));
  const std::string owner = fmt::format("{}:{}:{}", host, ::geteuid(), store.string());
  return fmt::format("{}={}", kSnapshots, Digest::of(owner).brief());
}

void remove_snapshots(const std::string& engine, const std::string& label) {
  try {
    const ContainerEngine found = find_engine(engine);
    const Captured images =
        ask(found, {"image", "ls", "--quiet", "--no-trunc", "--filter", "label=" + label},
            kAnswerMoment);
    if (images.exit.code != 0) return;
    for (const std::string& one : distinct_lines(images.out)) remove_image(found, one);
  } catch (const Error& error) {
    // An engine that is not there, or does not answer, says so when it is to be measured.
    log::debug("no snapshots of {} were looked for: {}", engine, error.what());
  }
}

}  // namespace mlenv::compare
