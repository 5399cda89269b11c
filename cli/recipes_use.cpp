#include "cli/recipes_use.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/process.hpp"
#include "cli/data.hpp"
#include "cli/input_sources.hpp"
#include "cli/lock_checks.hpp"
#include "cli/platforms.hpp"
#include "cli/run_steps.hpp"
#include "cli/run_verdict.hpp"
#include "cli/settings.hpp"
#include "images/inspect/inspect.hpp"
#include "images/platform.hpp"
#include "recipes/built_set.hpp"
#include "recipes/ignore.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

Built built_of(const Lock& lock, const Digest& digest, const std::optional<Digest>& files,
               const Image& image) {
  Built built{lock.platform, digest, files, kLayerFormat, image.digest(), {}};
  for (const Layer& layer : image.layers) built.layers.emplace_back(layer.title, layer.blob.digest);
  return built;
}

/// What the `.built` file beside the recipe records; nothing when there is none.
BuiltSet read_built(const fs::path& path) {
  const std::optional<std::string> text =
      read_beside(path, "built-invalid", "the record of the recipe's build");
  return text ? parse_builds(*text, path) : BuiltSet{};
}

/// Whether a build of this lock must give what is recorded; of other project files the layers
/// below them.
bool is_comparable(const Built& recorded, const Digest& lock) {
  return recorded.lock == lock && recorded.layer_format == kLayerFormat;
}

/// With --locked, before any work: a record of something else would leave the result unchecked.
void require_comparable(const fs::path& path, const Built& recorded, const Digest& lock) {
  if (is_comparable(recorded, lock)) return;
  Error error =
      refusal("not-reproduced", "`{}` cannot tell whether this build is the same", path.string());
  if (recorded.lock != lock) {
    error.because(fmt::format("it records a build of lock {}, this is lock {}",
                              recorded.lock.brief(), lock.brief()));
  } else {
    error.because(fmt::format("it records layers of format {}, this mlenv makes format {}",
                              recorded.layer_format, kLayerFormat));
  }
  throw std::move(error).hint("run `mlenv build` without --locked and commit what it writes");
}

std::string shown_layer(const Built& built, std::size_t at, bool with_title) {
  if (at >= built.layers.size()) return "none";
  const auto& [title, digest] = built.layers[at];
  return with_title ? fmt::format("`{}` {}", title, digest.str()) : digest.str();
}

/// Layers first: they explain the image.
std::vector<std::string> differences(const Built& recorded, const Built& built) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::max(recorded.layers.size(), built.layers.size()); ++i) {
    const bool both = i < recorded.layers.size() && i < built.layers.size();
    if (both && recorded.layers[i] == built.layers[i]) continue;
    const bool same_title = both && recorded.layers[i].first == built.layers[i].first;
    const std::string what = same_title ? fmt::format("layer `{}`", built.layers[i].first)
                                        : fmt::format("layer {}", i + 1);
    lines.push_back(fmt::format("{}: recorded {}, built {}", what,
                                shown_layer(recorded, i, !same_title),
                                shown_layer(built, i, !same_title)));
  }
  if (recorded.platform != built.platform) {
    lines.push_back(
        fmt::format("platform: recorded {}, built {}", recorded.platform, built.platform));
  }
  if (recorded.image != built.image) {
    lines.push_back(
        fmt::format("image: recorded {}, built {}", recorded.image.str(), built.image.str()));
  }
  return lines;
}

void keep_layers(Built& built, std::size_t count) {
  const auto end = static_cast<std::ptrdiff_t>(std::min(built.layers.size(), count));
  built.layers.erase(built.layers.begin() + end, built.layers.end());
}

/// Throws `not-reproduced` when the record is of the same lock and of another result. Where it is
/// of other project files, the `below` layers under those are all that must be the same.
void compare_built(const fs::path& path, Built recorded, Built built, std::size_t below) {
  if (!is_comparable(recorded, built.lock)) return;
  recorded.facts = built.facts;
  if (recorded.files != built.files) {
    keep_layers(recorded, below);
    keep_layers(built, below);
    recorded.files = built.files;
    recorded.image = built.image;
  }
  if (recorded == built) return;
  Error error =
      refusal("not-reproduced", "this build differs from what `{}` records", path.string());
  for (const std::string& line : differences(recorded, built)) error.because(line);
  throw std::move(error).hint(
      fmt::format("restore `{0}` if it was edited; remove it to accept this build", path.string()));
}

Error run_differs(const fs::path& path, const Built& recorded, const Built& built) {
  Error error =
      refusal("run-differs", "`run` steps gave something else than `{}` records", path.string());
  for (const std::string& line : differences(recorded, built)) error.because(line);
  return std::move(error).hint(fmt::format(
      "`mlenv pull` the recorded image ({}), and its layers are used; or build without --locked "
      "and commit what it writes",
      recorded.image.str()));
}

/// `run` steps are outside the promise of equal digests: another result of them is news, and a
/// refusal only where the record was to be kept to (`locked`). The news, when the record is to be
/// replaced for that.
std::optional<std::string> news_of_runs(const fs::path& path, const Built& recorded,
                                        const Built& built, bool locked, std::size_t runs) {
  if (runs == 0 || recorded == built || !is_comparable(recorded, built.lock)) return std::nullopt;
  if (!differ_in_runs_alone(recorded, built, runs)) return std::nullopt;
  if (locked) throw run_differs(path, recorded, built);
  std::string names;
  for (std::size_t i = built.layers.size() - runs; i < built.layers.size(); ++i) {
    if (recorded.layers[i] == built.layers[i]) continue;
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", built.layers[i].first);
  }
  return fmt::format(
      "note: executed again, these gave something else than `{}` recorded, and it now has the new "
      "digests: {}",
      path.string(), names);
}

/// What an earlier build recorded for the same inputs, for `run` steps.
void add_record(RunOptions& options, const Built& recorded, const Store& store,
                const BuildChoice& choice) {
  for (const auto& [title, digest] : recorded.layers) options.recorded.push_back(digest);
  const Digest image = recorded.image;
  options.find = [&store, &choice, image](const Digest& blob) -> std::optional<Layer> {
    try {
      for (const Layer& layer : store.image(image).layers) {
        if (layer.blob.digest == blob && store.has(blob)) return layer;
      }
    } catch (const Error&) {  // it is not there, or not all of it
    }
    return choice.fetch_layer ? choice.fetch_layer(image, blob) : std::nullopt;
  };
}

/// An image that was recorded, whole in the store; nullopt: it is not there, nor where layers may
/// be fetched from.
std::optional<Image> recorded_image(const Store& store, const Digest& digest,
                                    const BuildChoice& choice) {
  try {
    Image image = store.image(digest);
    const bool whole = std::all_of(image.layers.begin(), image.layers.end(),
                                   [&](const Layer& one) { return store.has(one.blob.digest); });
    if (whole) return image;
  } catch (const Error&) {  // it is not there
  }
  return choice.fetch_image ? choice.fetch_image(digest) : std::nullopt;
}

/// The image is there all the same where the recipe's folder cannot be written.
void write_built(const Ui& ui, const fs::path& path, const BuiltSet& builds) {
  if (builds.newer) {
    ui.say(
        fmt::format("warning: `{0}` is a newer mlenv's and is left as it is, so nothing records "
                    "this build: build with that one, or remove `{0}`",
                    path.string()));
    return;
  }
  try {
    write_file(path, render_builds(builds));
  } catch (const Error& error) {
    ui.say(fmt::format("warning: `{}` is not written, so nothing records this build: {}",
                       path.string(), error.frames().back()));
  }
}

ProjectFiles project_files(const Ui& ui, const Recipe& recipe, unsigned jobs) {
  if (recipe.files.empty()) return {};
  Pool pool{jobs};
  ProjectFiles files = collect_files(recipe, pool);
  if (files.secrets.empty()) return files;
  constexpr std::size_t kMost = 5;
  std::vector<std::string> names;
  for (const std::string& secret : files.secrets) names.push_back('`' + secret + '`');
  ui.say(fmt::format(
      "left out of the image, because files of such names hold secrets: {}; in `{}` "
      "a line `!{}` brings that one in, `{}` ends this note for it",
      listed(names, kMost), files.ignore_file, files.secrets.front(), files.secrets.front()));
  return files;
}

/// Nothing that a build writes lies where `files` copies it.
void require_outputs_apart(const Recipe& recipe, std::span<const fs::path> outputs) {
  for (const fs::path& output : outputs) {
    const std::optional<std::string> place = copied_place(recipe, output);
    if (!place) continue;
    throw usage_error("bad-output", "`{}` lies where `files` copies it", output.string())
        .because("the next build's image would hold this one")
        .hint(fmt::format("write it elsewhere, or name `{}` in `{}`", *place,
                          read_ignores(recipe.folder()).file));
  }
  if (const std::optional<std::string> place = copied_place(recipe, store_folder())) {
    throw usage_error("bad-output", "the store `{}` lies where `files` copies it",
                      store_folder().string())
        .hint(fmt::format("set MLENV_STORE to another folder, or name `{}` in `{}`", *place,
                          read_ignores(recipe.folder()).file));
  }
}

/// Layers that lie below the project's files.
std::size_t layers_below_files(const BuildResult& result, const ProjectFiles& files,
                               std::size_t runs) {
  std::size_t count = 0;
  for (std::size_t i = 0; i + files.parts.size() + runs < result.steps.size(); ++i) {
    count += result.steps[i].layers.size();
  }
  return count;
}

/// For reading and writing the record as one: builds for several platforms may end at one time.
FileLock lock_of_record(const fs::path& record) {
  const fs::path folder = cache_folder() / "records";
  make_folders(folder);
  const std::string name = fs::absolute(record).lexically_normal().string();
  return FileLock::wait(folder / Digest::of(name).hex(), FileLock::Mode::exclusive);
}

}  // namespace

LockOutcome provide_lock_aloud(Ui& ui, const Recipe& recipe, const LockChoice& choice) {
  LockOutcome locked = provide_lock(ui, recipe, choice);
  for (const std::string& change : locked.changes) ui.say(change);
  if (locked.written) ui.say(lock_summary(recipe, locked));
  return locked;
}

void record_index(const Ui& ui, const Recipe& recipe, const ImageSet& index) {
  const fs::path path = built_path(recipe.path);
  const FileLock alone = lock_of_record(path);
  BuiltSet records = read_built(path);
  const bool of_these =
      records.builds.size() == index.images.size() &&
      std::all_of(records.builds.begin(), records.builds.end(), [&](const Built& built) {
        return std::any_of(index.images.begin(), index.images.end(),
                           [&](const Image& image) { return image.digest() == built.image; });
      });
  if (!of_these || records.index == index.digest()) return;
  if (records.index) {
    throw refusal("not-reproduced", "this build differs from what `{}` records", path.string())
        .because(
            fmt::format("index: recorded {}, built {}", records.index->str(), index.digest().str()))
        .hint(fmt::format("restore `{0}` if it was edited; remove it to accept this build",
                          path.string()));
  }
  records.index = index.digest();
  write_built(ui, path, records);
}

BuildOutcome build_recipe(Ui& ui, const fs::path& recipe_path, const BuildChoice& choice) {
  const Recipe recipe = read_recipe(recipe_path);
  require_files(recipe);  // a misspelt path is not to be told after minutes
  require_outputs_apart(recipe, choice.outputs);
  const std::string platform = build_platform(recipe, choice.platform);
  LockOutcome locked = provide_lock_aloud(ui, recipe, choice.lock);
  const Lock& lock = *locked.locks.find(platform);
  const Digest digest = lock_digest(lock);
  const fs::path record = built_path(recipe.path);
  BuiltSet records = read_built(record);
  const Built* const recorded = records.find(platform);
  if (recorded != nullptr && choice.lock.locked) require_comparable(record, *recorded, digest);
  Inputs inputs{ui.store(), ui.http(), input_sources(ui, recipe, lock), cache_folder(),
                ui.progress()};
  BuildOptions options;
  options.jobs = choice.jobs;
  options.unpack = choice.unpack && platform == machine_platform();
  options.on_layer = choice.on_layer;
  options.sources = image_sources(recipe);
  options.files = project_files(ui, recipe, choice.jobs);
  options.run = run_options(recipe, choice.secrets);
  if (recorded != nullptr && is_comparable(*recorded, digest) &&
      recorded->files == options.files.digest) {
    add_record(options.run, *recorded, ui.store(), choice);
    options.finished = [&] { return recorded_image(ui.store(), recorded->image, choice); };
  }
  BuildResult result = while_doing("building `" + recipe_path.string() + "`", [&] {
    return build(lock, ui.store(), inputs, options, ui.progress());
  });
  require_device_code(ui, lock);
  Built built = built_of(lock, digest, options.files.digest, result.image);
  if (choice.facts) {
    built.facts = facts_for_record(image_facts(ui.store(), result.image, ui.progress()));
  } else if (recorded != nullptr && recorded->image == built.image) {
    built.facts = recorded->facts;
  }
  const std::size_t runs = lock.settings.run.size();
  std::optional<std::string> news;
  if (recorded != nullptr) news = news_of_runs(record, *recorded, built, choice.lock.locked, runs);
  if (news) ui.say(*news);
  if (recorded != nullptr && !news)
    compare_built(record, *recorded, built, layers_below_files(result, options.files, runs));
  ui.store().tag(Reference::parse(recipe.name + ":" + tag_for(platform)), result.image.digest());
  const auto is_dropped = [&](const Built& one) {
    return locked.locks.find(one.platform) == nullptr;
  };
  if (recorded == nullptr || *recorded != built ||
      std::any_of(records.builds.begin(), records.builds.end(), is_dropped)) {
    const FileLock alone = lock_of_record(record);
    records = read_built(record);  // a build for another platform may have ended meanwhile
    if (std::erase_if(records.builds, is_dropped) > 0) records.index.reset();
    records.put(built);
    write_built(ui, record, records);
  }
  remember_built_facts(ui.store(), result.image, lock);
  sync_in_background(ui.store());
  return {lock, std::move(options.files), std::move(result), std::move(locked.data)};
}

BuildOutcome built_here(Ui& ui, const fs::path& recipe_path, bool locked) {
  BuildChoice choice;
  choice.lock.locked = locked;
  choice.platform = machine_platform();
  return build_recipe(ui, recipe_path, choice);
}

Image built_image(Ui& ui, const fs::path& recipe_path, bool locked) {
  return built_here(ui, recipe_path, locked).result.image;
}

bool is_recipe_path(std::string_view argument) {
  return argument.ends_with(".yaml") || argument.ends_with(".yml");
}

void sync_in_background(const Store& store) {
  if (!store.needs_sync()) return;
  // It outlives us on purpose: nobody waits for the disk. It ends by itself after one sync.
  start_detached(Purpose{"store-sync"}, {own_executable().string(), "-q", "store", "sync"});
}

}  // namespace mlenv::cli
