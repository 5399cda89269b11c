#include "runner/compare/rows.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::compare {
namespace {

constexpr Better kLower = Better::lower;
constexpr Better kHigher = Better::higher;
constexpr Better kNeither = Better::neither;
constexpr std::uint64_t kFewestStarts = 5;  // that something is claimed of

constexpr std::array kRowSpecs = {
    RowSpec{"command.wall", "your command, wall time", "s", kLower,
            "What you asked for, from start to end, with everything that the side costs around it.",
            "CMD"},
    RowSpec{"command.cpu", "your command, processor time", "s", kLower,
            "Work that the processors did for it; more than on the bare host is overhead.", "CMD"},
    RowSpec{"command.memory", "your command, memory of its largest process", "bytes", kLower,
            "How large a machine it needs, without what the side itself takes.", "CMD"},
    RowSpec{"start.user", "start, to the first instruction", "s", kLower,
            "What every short job, test and shell waits for before anything of yours runs.",
            "sh -c 'echo'"},
    RowSpec{"start.cold", "start, files not in memory", "s", kLower,
            "The first start after a reboot, or on a node that just got the image.",
            "sh -c 'echo', the image's files put out of the page cache before"},
    RowSpec{"start.import", "start, to the framework imported", "s", kLower,
            "Most of a short experiment's wait; the import itself is the same files everywhere.",
            "python training.py"},
    RowSpec{"start.cold-import", "the same, files not in memory", "s", kLower,
            "The wait on a node that runs this image for the first time.",
            "python training.py, the image's files put out of the page cache before"},
    RowSpec{"start.step", "start, to the first training step", "s", kLower,
            "From pressing Enter to a model that trains: what autoscaling waits for.",
            "python training.py"},
    RowSpec{"stop", "stop, after the last instruction", "s", kLower,
            "Clean-up that each job pays; it limits how many short jobs a host gets done.",
            "sh -c 'echo'"},
    RowSpec{"train.step", "a training step", "s", kLower,
            "What long training costs: start-up is paid once, this is paid millions of times.",
            "python training.py: the middle one of 32 steps, batch of 64"},
    RowSpec{"train.epoch", "a training epoch", "s", kLower,
            "The same over a whole pass, with the pauses that single steps hide.",
            "python training.py: 2048 samples"},
    RowSpec{
        "cpu.integer", "processor, integers, one thread", "events/s", kHigher,
        "Arithmetic without system calls: hardware does it, so only emulation or a quota shows.",
        "sysbench cpu --threads=1 --time=1 run"},
    RowSpec{"cpu.float", "processor, floating point, one thread", "operations/s", kHigher,
            "Matrix products as preprocessing does them, in the processor's vector units.",
            "stress-ng --matrix 1 --matrix-method prod -t 1"},
    RowSpec{"cpu.all", "processor, all threads", "events/s", kHigher,
            "Whether all processors are given, and how they are scheduled.",
            "sysbench cpu --threads=N --time=1 run"},
    RowSpec{"memory.bandwidth", "memory bandwidth", "bytes/s", kHigher,
            "Training on the processor is often bound by it; nested page tables cost some of it.",
            "sysbench memory --memory-block-size=64M --time=1 run"},
    RowSpec{"data.load", "loading data, small files", "files/s", kHigher,
            "Data sets of many files: each costs several system calls, and shared folders of a "
            "virtual machine a round trip.",
            "python loading.py: 1000 files of 16 KiB, read from memory"},
    RowSpec{"disk.read", "disk, sequential reading", "bytes/s", kHigher,
            "Streaming a large data set or checkpoint from the mounted folder.",
            "fio --rw=read --bs=1M --direct=1"},
    RowSpec{"disk.write", "disk, sequential writing", "bytes/s", kHigher,
            "Writing checkpoints into the mounted folder.", "fio --rw=write --bs=1M --direct=1"},
    RowSpec{"disk.random", "disk, random reading", "operations/s", kHigher,
            "Shuffled access to a data set that does not fit in memory.",
            "fio --rw=randread --bs=4k --direct=1"},
    RowSpec{"disk.fsync", "disk, a small write made durable", "s", kLower,
            "Data bases and logs wait for it at each commit.",
            "fio --rw=write --bs=4k --fdatasync=1"},
    RowSpec{
        "network.bandwidth", "network, to this host", "bytes/s", kHigher,
        "Gradients and data between processes of one machine; to others the wire counts as well.",
        "iperf3 -c HOST -t 1"},
    RowSpec{"network.latency", "network, round trip to this host", "s", kLower,
            "Small messages: parameter servers, requests to a model.",
            "iperf3 -c HOST -b 1M -l 128 -t 1: round-trip time as TCP measured it"},
    RowSpec{"memory.rest", "memory of an idle instance", "bytes", kLower,
            "What the side takes before your code takes anything.",
            "MemAvailable before and after a start of sh -c 'read'"},
    RowSpec{"memory.added", "memory of each further instance", "bytes", kLower,
            "What of it is shared: it decides how many fit beside each other.",
            "MemAvailable before and after further starts"},
    RowSpec{"memory.density", "idle instances that fit on this host", "instances", kHigher,
            "An upper bound: real jobs need memory of their own.",
            "MemAvailable divided by the memory of each further instance", true},
    RowSpec{"snapshot.time", "snapshot of what a run wrote, time", "s", kLower,
            "Until another run could go on from there: checkpoints of a whole environment.",
            "mlenv run --keep, docker commit, podman commit, after 32 MiB were written"},
    RowSpec{"snapshot.size", "the same, size", "bytes", kLower,
            "What has to be kept, or moved, beside the image.",
            "mlenv run --keep, docker commit, podman commit, after 32 MiB were written"},
    RowSpec{"size.ship", "size to ship", "bytes", kLower,
            "What a new host has to fetch before the first start.",
            "sizes of the image's layers; of the virtual machine's disk", true},
    RowSpec{"size.update", "bytes for a security update of one package", "bytes", kLower,
            "What every host fetches when one Debian package of the base is updated.",
            "size of the layers that change with it, from their digests", true},
    RowSpec{"size.migrate", "bytes to a host that has the version before", "bytes", kLower,
            "Moving to another host after such an update: the rest is there already.",
            "sizes of layers that the other host lacks, from their digests", true},
    RowSpec{
        "time.migrate", "the same, time without the network's", "s", kLower,
        "Reading, checking and writing these bytes; add their size divided by your link's speed.",
        "a copy of these layers into a folder of this host, verified and synced"},
    RowSpec{
        "isolation.kernel", "kernel", "", kNeither,
        "One kernel for all, or one of its own: a hole in a shared kernel is a hole in the host.",
        "uname -r and the kernel's boot id, inside"},
    RowSpec{"isolation.processes", "processes that it sees", "processes", kLower,
            "What is not seen is neither signalled nor traced.", "python isolation.py: /proc"},
    RowSpec{"isolation.devices", "device files that it sees", "files", kLower,
            "Each is a way to a driver in the kernel.", "python isolation.py: /dev"},
    RowSpec{"isolation.capabilities", "capabilities that it could have", "capabilities", kLower,
            "What root inside may do at most (its bounding set).",
            "python isolation.py: CapBnd of /proc/self/status"},
    RowSpec{
        "isolation.calls", "risky system calls that are not refused", "of 20 calls", kLower,
        "The surface of the kernel under it. A virtual machine's calls are answered by a kernel "
        "of its own.",
        "python isolation.py: each is tried with arguments that do nothing"},
};

std::vector<std::string> fio(std::vector<std::string> words) {
  std::vector<std::string> all = {
      "fio",          "--name=compare",   "--filename=fio.data", "--size=64M", "--runtime=500ms",
      "--time_based", "--ioengine=psync", "--output-format=json"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::vector<ToolSpec> processor_tools() {
  return {
      {"cpu.integer", {"sysbench", "cpu", "--threads=1", "--time=1", "run"}},
      {"cpu.float",
       {"stress-ng", "--matrix", "1", "--matrix-method", "prod", "-t", "1", "--metrics-brief"}},
      {"cpu.all", {"sysbench", "cpu", "--threads=N", "--time=1", "run"}},
      {"memory.bandwidth",
       {"sysbench", "memory", "--memory-block-size=64M", "--memory-total-size=1T", "--time=1",
        "run"}},
  };
}

std::vector<ToolSpec> disk_tools() {
  return {
      {"disk.read", fio({"--rw=read", "--bs=1M", "--direct=1"})},
      {"disk.random", fio({"--rw=randread", "--bs=4k", "--direct=1"})},
      {"disk.write", fio({"--rw=write", "--bs=1M", "--direct=1"})},
      {"disk.fsync", fio({"--rw=write", "--bs=4k", "--fdatasync=1"})},
  };
}

std::vector<ToolSpec> network_tools() {
  return {
      {"network.bandwidth", {"iperf3", "-J", "-t", "1", "-c", "HOST"}},
      {"network.latency", {"iperf3", "-J", "-t", "1", "-b", "1M", "-l", "128", "-c", "HOST"}},
  };
}

ProbeSpec of_tools(const char* id, std::vector<ToolSpec> tools) {
  constexpr double kEach = 1.3;          // seconds
  constexpr std::uint64_t kWanted = 10;  // of nine one may be out of line without a wider interval
  ProbeSpec probe{id,      ProbeKind::tools, {}, kEach * static_cast<double>(tools.size()),
                  kWanted, kFewestStarts,    {}};
  for (const ToolSpec& one : tools) probe.rows.push_back(one.row);
  probe.tools = std::move(tools);
  return probe;
}

std::vector<ProbeSpec> all_probes() {
  using K = ProbeKind;
  return {
      {"command", K::command, {"command.wall", "command.cpu", "command.memory"}, 10, 10, 5, {}},
      {"start", K::start, {"start.user", "stop"}, 0.3, 20, 8, {}},
      {"training",
       K::training,
       {"start.import", "start.step", "train.step", "train.epoch"},
       6,
       10,
       5,
       {}},
      of_tools("processors", processor_tools()),
      {"isolation",
       K::script,
       {"isolation.kernel", "isolation.processes", "isolation.devices", "isolation.capabilities",
        "isolation.calls"},
       0.3,
       1,
       1,
       {},
       "isolation.py"},
      {"instances", K::instances, {"memory.rest", "memory.added"}, 2, 6, 5, {}},
      of_tools("disk", disk_tools()),
      of_tools("network", network_tools()),
      {"snapshot", K::snapshot, {"snapshot.time", "snapshot.size"}, 1.5, 6, 5, {}},
      {"data-load", K::script, {"data.load"}, 1.5, 8, 5, {}, "loading.py"},
      {"cold", K::cold, {"start.cold"}, 1.5, 6, 5, {}},
      {"cold-training", K::cold_training, {"start.cold-import"}, 10, 5, 0, {}},
  };
}

}  // namespace

std::span<const RowSpec> row_specs() { return kRowSpecs; }

const RowSpec* find_spec(std::string_view id) {
  const auto* const found = std::find_if(kRowSpecs.begin(), kRowSpecs.end(),
                                         [&](const RowSpec& one) { return one.id == id; });
  return found == kRowSpecs.end() ? nullptr : found;
}

RowResult row_of(const RowSpec& spec) {
  RowResult row;
  row.id = spec.id;
  row.title = spec.title;
  row.unit = spec.unit;
  row.better = name_of(spec.better);
  row.meaning = spec.meaning;
  row.command = spec.command;
  row.computed = spec.computed;
  return row;
}

const std::vector<ProbeSpec>& probe_specs() {
  static const std::vector<ProbeSpec> specs = all_probes();
  return specs;
}

bool is_asked(std::string_view id, const std::vector<std::string>& words) {
  if (words.empty()) return true;
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return id == word || id.substr(0, id.find('.')) == word;
  });
}

void check_rows(const std::vector<std::string>& words) {
  std::vector<std::string_view> known;
  for (const RowSpec& one : kRowSpecs) known.emplace_back(one.id);
  for (const std::string& word : words) {
    const bool is_known = std::any_of(known.begin(), known.end(),
                                      [&](std::string_view id) { return is_asked(id, {word}); });
    if (is_known) continue;
    const std::string near = did_you_mean(nearest(word, known));
    throw usage_error("usage", "`--rows`: there is no row `{}`", word)
        .hint(near.empty() ? "`mlenv help compare` and docs/compare.md list them" : near);
  }
}

}  // namespace mlenv::compare
