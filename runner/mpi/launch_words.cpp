#include "runner/mpi/launch_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/core.h>

#include "base/text.hpp"

namespace mlenv::mpi {
namespace {

constexpr std::array<std::string_view, 12> kStarters = {
    "mpirun",        "mpiexec",         "orterun",      "prterun",
    "prun",          "mpirun.openmpi",  "mpirun.mpich", "mpiexec.mpich",
    "mpiexec.hydra", "mpiexec.openmpi", "horovodrun",   "deepspeed"};

constexpr std::size_t kNone = std::string_view::npos;

std::optional<std::uint64_t> number_variable(const Environment& env, const char* name) {
  const auto found = env.find(name);
  if (found == env.end()) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [rest, error] = std::from_chars(found->second.data(), end, number);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> first_of(const Environment& env,
                                      std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto number = number_variable(env, name)) return number;
  }
  return std::nullopt;
}

struct Tag {
  std::size_t begin = kNone;
  std::size_t end = 0;
  std::int64_t rank = -1;
};

/// The number at a place, and where it ends; -1: there is none.
std::int64_t number_at(std::string_view text, std::size_t& at) {
  std::int64_t number = -1;
  const auto [rest, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (error != std::errc{}) return -1;
  at = static_cast<std::size_t>(rest - text.data());
  return number;
}

/// Open MPI's `[1,3]<stdout>:` from `from` on.
Tag find_tag(std::string_view text, std::size_t from) {
  for (std::size_t begin = text.find('[', from); begin != kNone;
       begin = text.find('[', begin + 1)) {
    std::size_t at = begin + 1;
    if (number_at(text, at) < 0 || at >= text.size() || text[at] != ',') continue;
    ++at;
    const std::int64_t rank = number_at(text, at);
    if (rank < 0 || !text.substr(at).starts_with("]<std")) continue;
    const std::size_t colon = text.find(">:", at);
    constexpr std::size_t kLongest = 12;
    if (colon == kNone || colon - at > kLongest) continue;
    return {begin, colon + 2, rank};
  }
  return {};
}

}  // namespace

bool starts_ranks(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return std::find(kStarters.begin(), kStarters.end(), name) != kStarters.end();
}

std::optional<Flavour> flavour_of(std::string_view version) {
  const auto says = [&](std::string_view word) { return version.find(word) != kNone; };
  if (says("Open MPI") || says("OpenRTE") || says("PRRTE")) return Flavour::open_mpi;
  if (says("HYDRA") || says("Hydra") || says("Intel(R) MPI")) return Flavour::hydra;
  return std::nullopt;
}

std::vector<std::string> mpirun_argv(Flavour flavour, std::uint64_t ranks,
                                     std::uint64_t ranks_per_node, std::string_view program,
                                     const std::vector<std::string>& command) {
  std::vector<std::string> argv{"mpirun", "-np", std::to_string(ranks)};
  if (flavour == Flavour::hydra) {
    argv.insert(argv.end(), {"-ppn", std::to_string(ranks_per_node)});
    if (ranks > 1) argv.emplace_back("-prepend-rank");
  } else if (ranks > 1) {
    argv.emplace_back("--tag-output");
  }
  argv.insert(argv.end(), {std::string(program), "mpi", "rank", "--"});
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

std::optional<RankPlace> rank_place(const Environment& env) {
  const auto rank = first_of(env, {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"});
  if (!rank) return std::nullopt;
  RankPlace place;
  place.rank = *rank;
  place.world = first_of(env, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}).value_or(1);
  place.local_rank =
      first_of(env, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}).value_or(0);
  place.local_world = first_of(env, {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}).value_or(1);
  return place;
}

std::string RankLines::take(std::string_view bytes) {
  std::string lines;
  if (ranks_ <= 1) return std::string(bytes);
  bytes_ += bytes;
  if (flavour_ == Flavour::open_mpi) {
    take_tagged(lines);
    return lines;
  }
  // Hydra writes `[3] ` before each line.
  for (std::size_t end = bytes_.find('\n'); end != kNone; end = bytes_.find('\n')) {
    const std::string_view line = std::string_view(bytes_).substr(0, end + 1);
    std::size_t at = 1;
    const std::int64_t rank = line.starts_with("[") ? number_at(line, at) : -1;
    const bool tagged = rank >= 0 && line.substr(at).starts_with("] ");
    lines += tagged ? prefix(rank).append(line.substr(at + 2)) : std::string(line);
    bytes_.erase(0, end + 1);
  }
  return lines;
}

/// A tag may stand in the midst of a line: whose line did not end is interrupted by others.
void RankLines::take_tagged(std::string& lines) {
  constexpr std::size_t kLongestTag = 40;
  while (!bytes_.empty()) {
    const Tag tag = find_tag(bytes_, 0);
    if (tag.begin == 0) {
      current_ = tag.rank;
      bytes_.erase(0, tag.end);
      continue;
    }
    std::size_t end = std::min(tag.begin, bytes_.size());
    // Half a tag at the end waits for the rest.
    const std::size_t bracket = bytes_.rfind('[');
    if (tag.begin == kNone && bracket != kNone && bytes_.size() - bracket < kLongestTag &&
        bytes_.find('\n', bracket) == kNone) {
      end = bracket;
    }
    if (end == 0) return;
    add(std::string_view(bytes_).substr(0, end), lines);
    bytes_.erase(0, end);
    if (tag.begin == kNone) return;
  }
}

void RankLines::add(std::string_view text, std::string& lines) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string& line = begun_[current_];
    line += text.substr(0, end);
    if (end == kNone) return;
    lines += prefix(current_) + line + "\n";
    line.clear();
    text.remove_prefix(end + 1);
    current_ = -1;  // each line has its own
  }
}

std::string RankLines::rest() {
  std::string lines;
  if (!bytes_.empty()) add(std::exchange(bytes_, {}), lines);
  for (auto& [rank, line] : begun_) {
    if (!line.empty()) lines += prefix(rank) + line + "\n";
    line.clear();
  }
  return lines;
}

std::string RankLines::prefix(std::int64_t rank) const {
  if (rank < 0) return {};
  const std::size_t width = std::to_string(ranks_ - 1).size();
  return fmt::format("{:>{}}: ", rank, width);
}

}  // namespace mlenv::mpi
