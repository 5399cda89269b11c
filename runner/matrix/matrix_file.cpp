#include "runner/matrix/matrix_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "base/beneath.hpp"
#include "base/descriptor_path.hpp"
#include "base/printable.hpp"
#include "base/record_json.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/text.hpp"
#include "runner/record/run_records.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::matrix {
namespace {

constexpr RecordKind kMatrix = {"mlenv.matrix/1", "record of a matrix",
                                "`mlenv run --matrix` writes it"};
constexpr std::string_view kLockFile = ".lock";

/// What may stand in a folder's name on any file system, and needs no care in a shell.
std::string plain_name(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool stays =
        is_alphanumeric(c) || std::string_view("._+-=,@%").find(c) != std::string_view::npos;
    out += stays ? c : '_';
  }
  return out;
}

/// Equal for different values only by their length or by what it cannot hold.
std::string folder_name(const std::vector<RecordedVariable>& values) {
  constexpr std::size_t kLongest = 120;
  std::string name;
  for (const RecordedVariable& value : values) {
    if (!value.value) continue;
    if (!name.empty()) name += ',';
    name += plain_name(value.name + "=" + *value.value);
  }
  if (name.size() > kLongest) name.resize(kLongest);
  return name;
}

/// Somebody else's file of that name may be anything.
void require_own_lock(const fs::path& lock) {
  struct stat status {};
  if (::lstat(lock.c_str(), &status) != 0) return;
  if (S_ISREG(status.st_mode) && status.st_size == 0) return;
  throw refusal("matrix-exists", "`{}` is not a matrix's", lock.string())
      .because("it is there already, and holds something or is a link")
      .hint("name another folder: `--results DIR`");
}

Fd made_and_opened(const fs::path& folder) {
  make_folders(folder);
  return open_file(folder, O_RDONLY | O_DIRECTORY);
}

/// `inside`: the folder, by its descriptor.
FileLock held(const fs::path& folder, const fs::path& inside) {
  require_own_lock(folder / kLockFile);
  std::optional<FileLock> lock = FileLock::attempt(inside / kLockFile, FileLock::Mode::exclusive);
  if (lock) return *std::move(lock);
  throw refusal("matrix-busy", "another mlenv works on the matrix in `{}`", folder.string())
      .hint("wait for its end, or end it with Ctrl-C where it runs");
}

/// As far as the record tells more than is known.
void take_run(const RunRecord& run, Variation& into) {
  into.run = run.start.id;
  into.state = state_by(run);
  into.exit_code.reset();
  into.seconds.reset();
  if (!run.end) return;
  into.exit_code = run.end->exit_code;
  into.seconds = run.end->seconds;
}

}  // namespace

std::string render_matrix(const MatrixRecord& record) { return render_record(record, kMatrix); }
MatrixRecord parse_matrix_record(std::string_view text, std::string_view shown) {
  MatrixRecord record = read_record<MatrixRecord>(text, shown, kMatrix);
  // The file lies where runs may write: a folder is a name, and leads nowhere else.
  for (const Variation& one : record.variations) {
    const bool leads = one.folder.empty() || one.folder == "." || one.folder == ".." ||
                       one.folder.find('/') != std::string::npos;
    if (leads) throw failure("bad-json", "`{}` names a folder that is no name", shown);
  }
  return record;
}

std::string state_by(const RunRecord& run) {
  if (run.end && run.end->ended_by == "stop") return "stopped";
  return run.state == "running" ? "lost" : run.state;
}

std::size_t count_in(const MatrixRecord& record, std::string_view state) {
  return static_cast<std::size_t>(
      std::count_if(record.variations.begin(), record.variations.end(),
                    [&](const Variation& one) { return one.state == state; }));
}

std::vector<std::size_t> not_done(const MatrixRecord& record) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < record.variations.size(); ++i) {
    if (record.variations[i].state != "done") open.push_back(i);
  }
  return open;
}

std::vector<Variation> variations_of(const std::vector<Axis>& axes) {
  std::vector<Variation> all(count_of(axes));
  std::set<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Variation& one = all[i];
    one.number = i + 1;
    for (Value& value : values_of(axes, i)) {
      const bool secret = is_secret_name(value.name);
      one.values.push_back(
          {std::move(value.name), secret ? std::nullopt : std::optional(std::move(value.text))});
    }
    one.folder = folder_name(one.values);
    const std::string number = std::to_string(one.number);
    if (one.folder.empty()) one.folder = number;
    // What was cut off or replaced may be what told two apart.
    while (!names.insert(one.folder).second) one.folder += "-" + number;
  }
  return all;
}

std::string shown_values(const Variation& variation) {
  std::vector<std::string> parts;
  for (const RecordedVariable& one : variation.values) {
    parts.push_back(one.name + "=" + one.value.value_or(std::string(kMasked)));
  }
  return printable(join(parts, " "));
}

std::vector<std::string> differing_parts(const MatrixRecord& from, const MatrixRecord& to) {
  std::vector<std::string> parts;
  for (const PlanPart& part : to.plan) {
    if (std::find(from.plan.begin(), from.plan.end(), part) == from.plan.end()) {
      parts.push_back(part.what);
    }
  }
  for (const PlanPart& part : from.plan) {  // those that only the first has
    const bool both = std::any_of(to.plan.begin(), to.plan.end(),
                                  [&](const PlanPart& other) { return other.what == part.what; });
    if (!both) parts.push_back(part.what);
  }
  return parts;
}

MatrixFolder::MatrixFolder(const fs::path& folder)
    : MatrixFolder(folder, {}, !fs::exists(folder)) {}

MatrixFolder::MatrixFolder(fs::path folder, Fd open, bool made)
    : folder_(std::move(folder)),
      open_(open ? std::move(open) : made_and_opened(folder_)),
      made_folder_(made),
      made_lock_(!fs::exists(fs::symlink_status(inside() / kLockFile))),
      lock_(held(folder_, inside())) {}

fs::path MatrixFolder::inside() const { return descriptor_path(open_); }

std::string MatrixFolder::real_path() const { return fs::read_symlink(inside()).string(); }

Fd MatrixFolder::make_folder(const Variation& variation) const {
  constexpr mode_t kUsual = 0777;
  const fs::path shown = folder_ / variation.folder;
  if (::mkdirat(open_.get(), variation.folder.c_str(), kUsual) != 0 && errno != EEXIST) {
    throw os_error(errno, "cannot make the folder `{}`", shown.string());
  }
  Fd made = open_beneath(open_.get(), variation.folder, O_RDONLY | O_DIRECTORY, Links::none);
  if (made) return made;
  if (errno != ELOOP && errno != ENOTDIR) {
    throw os_error(errno, "cannot open the folder `{}`", shown.string());
  }
  // Runs write to the project, and what is mounted here must not be where a link of theirs leads.
  throw refusal("matrix-exists", "`{}` is not the folder that mlenv made", shown.string())
      .because("something is in its place")
      .hint("name another folder for results: `--results DIR`");
}

void MatrixFolder::require_no_others(const MatrixRecord& record) const {
  for (const Variation& one : record.variations) {
    const fs::path metrics = fs::path(one.folder) / kMetricsFile;
    if (!fs::exists(fs::symlink_status(inside() / metrics))) continue;
    take_back({});
    throw refusal("matrix-exists", "`{}` is there already, and of no matrix in `{}`",
                  (folder_ / metrics).string(), folder_.string())
        .hint("name another folder, or remove what is in this one: `--results DIR`");
  }
}

std::optional<MatrixRecord> MatrixFolder::read() const {
  const std::optional<std::string> text =
      read_small_file_if_exists(inside() / kMatrixFile, size_limit::kRunRecord);
  if (!text) return std::nullopt;
  return parse_matrix_record(*text, (folder_ / kMatrixFile).string());
}

void MatrixFolder::write(const MatrixRecord& record) const {
  // On the disk before its name: after a power cut `--resume` finds this one or the one before.
  write_file(inside() / kMatrixFile, render_matrix(record) + "\n");
}

void MatrixFolder::take_back(const MatrixRecord& record) const noexcept {
  for (const Variation& one : record.variations) {
    (void)::unlinkat(open_.get(), one.folder.c_str(), AT_REMOVEDIR);
  }
  std::error_code error;
  fs::remove(inside() / kMatrixFile, error);
  if (made_lock_) fs::remove(inside() / kLockFile, error);
  if (made_folder_) (void)::rmdir(folder_.c_str());
}

std::optional<MatrixRecord> peek(const fs::path& folder) {
  try {
    const std::optional<std::string> text =
        read_small_file_if_exists(folder / kMatrixFile, size_limit::kRunRecord);
    if (!text) return std::nullopt;
    return parse_matrix_record(*text, (folder / kMatrixFile).string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

namespace {

/// The newest run of each variation, by its number.
std::map<std::uint64_t, RunRecord> newest_runs(const RunRecords& records,
                                               const MatrixRecord& matrix) {
  std::map<std::uint64_t, RunRecord> newest;
  const std::string began = matrix.id.substr(0, matrix.id.find_last_of('-'));
  for (const std::string& id : records.ids()) {  // oldest first; ids begin with their time
    if (id < began) continue;
    try {
      RunRecord run = records.read_brief(id);
      const auto& variation = run.start.variation;
      if (!variation || variation->matrix != matrix.id) continue;
      const std::uint64_t number = variation->number;
      newest.insert_or_assign(number, std::move(run));
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): one that cannot be read is run again
    }
  }
  return newest;
}

}  // namespace

namespace {

std::vector<Metric> readable_metrics(const fs::path& folder) {
  try {
    return read_metrics(folder);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void settle(MatrixRecord& record, const fs::path& runs_folder,
            const std::set<std::uint64_t>& going_on) {
  if (record.state != "running") return;
  const RunRecords records{runs_folder};
  std::map<std::uint64_t, RunRecord> newest = newest_runs(records, record);
  for (Variation& one : record.variations) {
    if (going_on.contains(one.number)) continue;
    const auto found = newest.find(one.number);
    const bool known =
        found == newest.end() || (one.run == found->second.start.id && one.state != "running");
    if (!known && one.state != "done") {
      if (found->second.state == "running") {
        records.wait_for_end(found->second.start.id);
        found->second = records.read_brief(found->second.start.id);
      }
      take_run(found->second, one);
      one.metrics = readable_metrics(fs::path(record.results) / one.folder);
    } else if (one.state == "running") {
      one.state = "lost";  // its record was taken away
    }
  }
}

}  // namespace mlenv::matrix
