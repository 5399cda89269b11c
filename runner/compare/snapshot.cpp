#include "runner/compare/snapshot.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/compare/records.hpp"
#include "runner/engine/engine.hpp"
#include "runner/engine/engine_image.hpp"
#include "runner/record/kept_layers.hpp"

namespace mlenv::compare {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kWrite = "head -c 33554432 /dev/urandom >/var/tmp/mlenv-compare && echo";
constexpr const char* kTime = "snapshot.time";
constexpr const char* kSize = "snapshot.size";
constexpr milliseconds kAnswer{30000};

Found without(const std::string& why) {
  Found found;
  found.whys[kTime] = found.whys[kSize] = why;
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
    found = without(why_of(launched, deadline));
  } else if (!record || !record->start.layer) {
    found = without("the run left no record of what it kept");
  } else {
    found.values[kTime] = launched.seconds - *launched.last_line;
    found.values[kSize] = static_cast<double>(layers.size_bytes(record->start.layer->id));
    found.texts[kTime] = "with the end of the run";
  }
  found.stopped = launched.stopped;
  found.timed_out = launched.timed_out;
  if (record) (void)records.remove(record->start.id);
  (void)layers.remove_unnamed();
  return found;
}

std::set<std::string> containers_of(const ContainerEngine& engine) {
  const Captured answer =
      ask(engine, {"ps", "--quiet", "--no-trunc", "--filter", "label=dev.mlenv.run"}, kAnswer);
  std::set<std::string> ids;
  for (const std::string_view one : split(answer.out, '\n')) {
    if (!trim(one).empty()) ids.emplace(trim(one));
  }
  return ids;
}

std::optional<double> image_bytes(const ContainerEngine& engine, const std::string& image) {
  const Captured answer =
      ask(engine, {"image", "inspect", "--format", "{{.Size}}", image}, kAnswer);
  const std::string_view text = trim(answer.out);
  double bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (answer.exit.code != 0 || error != std::errc{}) return std::nullopt;
  return bytes;
}

Found commit(const Bench& bench, const ContainerEngine& engine, const std::string& container) {
  const Clock::time_point begun = Clock::now();
  const Captured answer = ask(engine, {"commit", container}, kAnswer);
  const std::chrono::duration<double> taken = Clock::now() - begun;
  const std::string image(trim(answer.out));
  if (answer.exit.code != 0 || image.empty()) {
    return without(fmt::format("{} commit: {}", engine.name, trim(answer.err)));
  }
  Found found;
  found.values[kTime] = taken.count();
  const auto before = image_bytes(engine, engine_image_name(Digest::parse(bench.terms.image)));
  const auto after = image_bytes(engine, image);
  if (before && after) found.values[kSize] = *after - *before;
  (void)ask(engine, {"image", "rm", image}, kAnswer);
  return found;
}

/// Of a container that goes on meanwhile.
Found commit_container(const Bench& bench, const ActiveSide& side, milliseconds deadline,
                       StopSignals& signals) {
  const ContainerEngine engine = find_engine(std::string(side.spec->id));
  const std::set<std::string> before = containers_of(engine);
  const std::string script = std::string(kWrite) + " && read line";
  Waiting waiting(minder_of(bench, side),
                  command_on(bench, side, {Which::image, {"sh", "-c", script}}));
  if (!waiting.ready(deadline, signals)) {
    Found found = without("its container did not start");
    found.stopped = signals.came() != 0;
    return found;
  }
  std::vector<std::string> fresh;
  for (const std::string& one : containers_of(engine)) {
    if (!before.contains(one)) fresh.push_back(one);
  }
  Found found = fresh.size() == 1 ? commit(bench, engine, fresh.front())
                                  : without("other runs began at the same time");
  waiting.end(kAnswer);
  return found;
}

}  // namespace

Found run_snapshot(const Bench& bench, const ActiveSide& side, milliseconds deadline,
                   StopSignals& signals) {
  return side.spec->id == "builtin" ? keep_layer(bench, side, deadline, signals)
                                    : commit_container(bench, side, deadline, signals);
}

}  // namespace mlenv::compare
