#include "runner/compare/sizes.hpp"

#include <unistd.h>
#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "runner/compare/machine_size.hpp"
#include "runner/compare/output.hpp"
#include "runner/compare/probes.hpp"
#include "runner/compare/rows.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::steady_clock;

constexpr const char* kBare =
    "nothing is shipped to a bare host as one thing: its packages are installed there";
constexpr const char* kDiskFile = "its disk travels as a file, in the time that the link takes";

/// Seconds to read, verify and write these layers.
double copy_seconds(const Store& store, const std::vector<Layer>& layers) {
  const TemporaryFolder folder = store.scratch();
  const steady_clock::time_point begun = steady_clock::now();
  for (const Layer& layer : layers) {
    const Fd file = open_file(folder.path() / layer.blob.digest.hex(), O_WRONLY | O_CREAT | O_EXCL);
    FdSink into(file.get());
    VerifyingSink verified(into, layer.blob.digest, layer.blob.size_bytes, layer.title);
    const std::unique_ptr<Source> from = store.open(layer.blob.digest);
    copy(*from, verified);
    verified.finish();
    if (::fsync(file.get()) != 0) throw os_error(errno, "cannot write a copy of a layer");
  }
  return std::chrono::duration<double>(steady_clock::now() - begun).count();
}

struct Copies {
  std::vector<double> seconds;
  std::string why;  ///< there are none
};

Copies copies_of(const Store& store, const std::vector<Layer>& layers,
                 const SizeQuestion& question) {
  const double most = question.seconds;
  constexpr int kCopies = 6;
  constexpr double kSlow = 100e6;  // bytes a second that most disks have
  Copies copies;
  double spent = 0;
  if (static_cast<double>(bytes_of(layers)) / kSlow > most) copies.why = "no time left";
  try {
    for (int i = 0; i < kCopies && spent < most && !layers.empty() && copies.why.empty(); ++i) {
      if (question.stopped()) return {{}, "interrupted"};
      copies.seconds.push_back(copy_seconds(store, layers));
      spent += copies.seconds.back();
    }
  } catch (const Error& error) {
    copies.why = "the layers cannot be copied: " + why_of(error);
  }
  return copies;
}

/// The same for all containers, since they take the same layers.
struct SameFigures {
  std::vector<double> values;
  std::string note;
  std::string why{};  ///< there are none
};

/// Of the virtual machine: the disk as a whole, whatever of it changed.
void fill_machine(const MachineSize& machine, Cell& cell) {
  if (machine.why.empty()) {
    cell.samples.push_back({static_cast<double>(machine.bytes), 0});
    cell.note = "measured: its disk as a whole and its kernel, compressed";
  } else {
    cell.why = machine.why;
  }
}

void add_size_row(const char* id, const SameFigures& same, const MachineSize& machine,
                  const std::vector<SideResult>& sides, std::vector<RowResult>& rows) {
  RowResult row = row_of(*find_spec(id));
  for (const SideResult& side : sides) {
    Cell& cell = row.sides.emplace_back();
    cell.side = side.id;
    if (side.why) {
      cell.why = side.why;
    } else if (side.id == "bare") {
      cell.why = kBare;
    } else if (side.id == "vm") {
      fill_machine(machine, cell);
    } else if (same.values.empty()) {
      cell.why =
          same.why.empty() ? "the image does not say which of its layers is the base" : same.why;
    } else {
      for (const double value : same.values) cell.samples.push_back({value, 0});
      cell.note = same.note;
    }
  }
  rows.push_back(std::move(row));
}

void fill_density(const Cell* added, double available, Cell& cell) {
  if (added == nullptr || added->samples.empty()) {
    cell.why = "the memory of an instance is not known";
    if (added != nullptr && added->why) cell.why = *added->why;
    return;
  }
  std::vector<double> values;
  for (const Sample& sample : added->samples) values.push_back(sample.value);
  const Summary summary = summary_of(std::move(values));
  if (summary.low > 0) {
    cell.samples.push_back({available / summary.median, 0});
    cell.note = "computed";
  } else {
    cell.why = "the memory of an instance is lost in the noise";
  }
}

std::vector<double> one(const std::vector<Layer>& layers) {
  if (layers.empty()) return {};
  return {static_cast<double>(bytes_of(layers))};
}

}  // namespace

std::vector<Layer> layers_of_base(const Image& image) {
  std::vector<Layer> base;
  for (const Layer& layer : image.layers) {
    if (layer.title.starts_with("debian:") || layer.title.starts_with("ubuntu:")) {
      base.push_back(layer);
    }
  }
  return base;
}

std::vector<Layer> layers_beyond(const Image& image, const Image& other) {
  std::vector<Layer> beyond;
  for (const Layer& layer : image.layers) {
    const bool shared =
        std::any_of(other.layers.begin(), other.layers.end(),
                    [&](const Layer& one) { return one.blob.digest == layer.blob.digest; });
    if (!shared) beyond.push_back(layer);
  }
  return beyond;
}

std::uint64_t bytes_of(const std::vector<Layer>& layers) {
  std::uint64_t bytes = 0;
  for (const Layer& layer : layers) bytes += layer.blob.size_bytes;
  return bytes;
}

namespace {

MachineSize size_of_machine(const SizeQuestion& question, const Store& store,
                            const std::vector<SideResult>& sides, Progress& progress) {
  const bool takes_part = std::any_of(sides.begin(), sides.end(), [](const SideResult& side) {
    return side.id == "vm" && !side.why;
  });
  const bool asked = is_asked("size.ship", question.rows) ||
                     is_asked("size.update", question.rows) ||
                     is_asked("size.migrate", question.rows);
  if (!takes_part || !asked) return {};
  if (question.machine_seconds == 0) return {0, "not with --quick: its disk is compressed for it"};
  const Activity activity(progress, "compressing the virtual machine's disk");
  try {
    return machine_size(store, *question.image, question.machine_seconds, question.stopped);
  } catch (const Error& error) {
    return {0, why_of(error)};
  }
}

}  // namespace

void add_sizes(const SizeQuestion& question, const Store& store,
               const std::vector<SideResult>& sides, std::vector<RowResult>& rows,
               Progress& progress) {
  const auto asked = [&](const char* id) { return is_asked(id, question.rows); };
  const std::vector<Layer> base = layers_of_base(*question.image);
  const std::vector<Layer> moved =
      question.previous != nullptr ? layers_beyond(*question.image, *question.previous) : base;
  const MachineSize machine = size_of_machine(question, store, sides, progress);
  const std::string how = question.previous != nullptr
                              ? "computed: layers that the version before does not have"
                              : "computed: the base's layer";
  if (asked("size.ship")) {
    add_size_row("size.ship", {one(question.image->layers), "computed: all layers, compressed"},
                 machine, sides, rows);
  }
  if (asked("size.update")) {
    add_size_row("size.update", {one(base), "computed: the base's layer"}, machine, sides, rows);
  }
  if (asked("size.migrate")) add_size_row("size.migrate", {one(moved), how}, machine, sides, rows);
  if (!asked("time.migrate")) return;
  const Activity activity(progress, "copying layers");
  const Copies copies = copies_of(store, moved, question);
  add_size_row("time.migrate", {copies.seconds, "a measured copy on this host", copies.why},
               {0, kDiskFile}, sides, rows);
}

void add_density(std::vector<RowResult>& rows, const std::vector<SideResult>& sides) {
  const auto is_added = [](const RowResult& row) { return row.id == "memory.added"; };
  const auto added = std::find_if(rows.begin(), rows.end(), is_added);
  if (added == rows.end()) return;
  const double available = available_bytes(read_file("/proc/meminfo")).value_or(0);
  RowResult row = row_of(*find_spec("memory.density"));
  for (const SideResult& side : sides) {
    Cell& cell = row.sides.emplace_back();
    cell.side = side.id;
    fill_density(find_cell(*added, side.id), available, cell);
  }
  rows.insert(added + 1, std::move(row));
}

}  // namespace mlenv::compare
