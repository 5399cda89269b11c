// `mlenv gc`: frees the room of what nobody needs any more (docs/store.md, "gc").
#include <algorithm>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/progress.hpp"
#include "cli/age.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "images/garbage.hpp"
#include "recipes/text.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/local/option_words.hpp"
#include "runner/record/kept_layers.hpp"
#include "runner/record/run_records.hpp"
#include "runner/vm/disk/image_disk.hpp"

namespace mlenv::cli {
namespace {

struct GcOptions {
  std::string older_than;
  std::string max_size;
  bool forget_history = false;
  bool dry_run = false;
};

/// Of runs, past ones among them, and of jobs that wait.
std::vector<Digest> needed_by_runs() {
  std::vector<Digest> needed = RunRecords{runs_folder(store_folder())}.needs();
  for (std::vector<Digest>& more :
       std::vector{KeptLayers{store_folder()}.needs(), job::needed_by_jobs(store_folder())}) {
    std::move(more.begin(), more.end(), std::back_inserter(needed));
  }
  return needed;
}

nlohmann::json share_json(const Garbage::Share& share) {
  return {{"count", share.count}, {"bytes", share.bytes}};
}

std::string time_of(std::chrono::system_clock::time_point when) {
  return utc_text(std::chrono::floor<std::chrono::seconds>(when));
}

void answer_garbage_json(const Garbage& garbage, std::uint64_t disks, bool dry_run, const Ui& ui) {
  nlohmann::json since;
  if (garbage.held_since) since = time_of(*garbage.held_since);
  ui.answer(canonical({{"schema", "mlenv.gc/1"},
                       {"dry_run", dry_run},
                       {"bytes", garbage.bytes() + disks},
                       {"images", share_json(garbage.images)},
                       {"blobs", share_json(garbage.blobs)},
                       {"trees", share_json(garbage.trees)},
                       {"keys", share_json(garbage.keys)},
                       {"disks", {{"bytes", disks}}},
                       {"spared", share_json(garbage.spared)},
                       {"stuck", share_json(garbage.stuck)},
                       {"held_since", since},
                       {"for_runs", share_json(garbage.for_runs)},
                       {"for_history", share_json(garbage.for_history)}}));
}

std::string garbage_parts(const Garbage& garbage, std::uint64_t disks) {
  std::vector<std::string> parts;
  const auto add = [&](const Garbage::Share& share, std::string_view one, std::string_view many) {
    if (share.count == 0) return;
    parts.push_back(fmt::format("{} {} ({})", share.count, share.count == 1 ? one : many,
                                human_bytes(share.bytes)));
  };
  add(garbage.images, "image", "images");
  add(garbage.blobs, "layer or package", "layers and packages");
  add(garbage.trees, "unpacked layer", "unpacked layers");
  add(garbage.keys, "build step", "build steps");
  if (disks > 0) parts.push_back(fmt::format("disks of virtual machines ({})", human_bytes(disks)));
  return parts.empty() ? "" : ": " + join(parts, ", ");
}

/// What stays though no name leads there, why, and what would let it go.
void say_what_stays(const Garbage& garbage, const Ui& ui) {
  if (garbage.for_runs.count > 0) {
    ui.say(fmt::format(
        "{} stays for recorded runs and jobs alone: `mlenv runs prune --older-than 30d` "
        "takes old records away",
        human_bytes(garbage.for_runs.bytes)));
  }
  if (garbage.for_history.count > 0) {
    ui.say(fmt::format("{} stays for `mlenv rollback` alone: `--forget-history` frees that, too",
                       human_bytes(garbage.for_history.bytes)));
  }
  if (garbage.stuck.count > 0) {
    ui.say(fmt::format("{} could not be taken away: {}", human_bytes(garbage.stuck.bytes),
                       garbage.stuck_because));
  }
  if (garbage.spared.count > 0) {
    std::string why = "was used lately, or is not in the way";
    if (garbage.held_since == std::chrono::system_clock::from_time_t(0)) {
      why += "; an mlenv is at work of which nobody knows since when";
    } else if (garbage.held_since) {
      why += fmt::format("; an mlenv has been at work since {}, and may need it",
                         time_of(*garbage.held_since));
    }
    ui.say(
        fmt::format("{} that nobody needs stays: it {}", human_bytes(garbage.spared.bytes), why));
  }
}

int gc_command(const GcOptions& options, Ui& ui) {
  GarbageSettings settings;
  if (!options.older_than.empty()) settings.unused_for = age_of(options.older_than, "7d");
  if (!options.max_size.empty()) settings.keep = parse_size("--max-size", options.max_size);
  settings.forget_history = options.forget_history;
  settings.only_look = options.dry_run;
  if (!Store::exists(store_folder())) {
    if (ui.options.json) {
      answer_garbage_json({}, 0, options.dry_run, ui);
    } else {
      ui.answer("there is no store yet");
    }
    return 0;
  }
  settings.needed = needed_by_runs;
  Garbage garbage;
  {
    Activity activity{ui.progress(), "freeing room"};
    settings.freed = [&](std::uint64_t bytes) { activity.advance(bytes); };
    garbage = ui.store().collect_garbage(settings);
  }
  const std::uint64_t disks = remove_stale_disks(ui.store(), options.dry_run);
  if (ui.options.json) {
    answer_garbage_json(garbage, disks, options.dry_run, ui);
    return 0;
  }
  ui.answer(fmt::format("{} {}{}", options.dry_run ? "would free" : "freed",
                        human_bytes(garbage.bytes() + disks), garbage_parts(garbage, disks)));
  say_what_stays(garbage, ui);
  return 0;
}

}  // namespace

Action declare_gc(CLI::App& app) {
  auto options = std::make_shared<GcOptions>();
  app.add_option("--older-than", options->older_than, "what was not used for so long: `7d`")
      ->type_name("AGE");
  app.add_option("--max-size", options->max_size,
                 "no more than it takes for the store to come down to so much: `50g`")
      ->type_name("SIZE");
  app.add_flag("--forget-history", options->forget_history,
               "also images that names meant before, for `rollback`");
  app.add_flag("-n,--dry-run", options->dry_run, "tell, and take nothing away");
  app.footer("example: mlenv gc --older-than 7d");
  return [options](Ui& ui) { return gc_command(*options, ui); };
}

}  // namespace mlenv::cli
