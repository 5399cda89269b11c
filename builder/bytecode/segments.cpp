#include "builder/bytecode/segments.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include <nlohmann/json.hpp>

#include "base/deflate.hpp"
#include "base/error.hpp"
#include "base/tar.hpp"
#include "builder/recall.hpp"
#include "builder/staged_layer.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSegmentSchema = "mlenv.bytecode/1";
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;                 // of source
constexpr std::uint64_t kOwnBytecodeLayerBytes = std::uint64_t{2} << 20;  // compressed

struct ModuleSource {
  const InstalledFile* file;
  std::string pyc;  ///< where its bytecode goes
};

/// What one batch gives.
struct Part {
  Bytes members;  ///< gzip, of whole tar entries
  std::uint64_t tar_bytes = 0;
};

/// State of one wheel's compilation, shared by its batches.
struct Compilation {
  Compilation(SegmentJob what, std::function<void(Segment)> then)
      : job(std::move(what)), done(std::move(then)) {}
  SegmentJob job;
  std::vector<ModuleSource> sources;                         // in the order of `pyc`
  std::vector<std::pair<std::size_t, std::size_t>> batches;  // [first, last) of sources
  std::vector<Part> parts;                                   // one a batch
  std::mutex mutex;                                          // guards `folders`
  std::set<std::string> folders;
  std::atomic<std::size_t> left{0};
  std::function<void(Segment)> done;
};

/// PEP 3147: a/b.py → a/__pycache__/b.cpython-311.pyc
std::string pyc_path(const std::string& source, int python_minor) {
  const std::size_t slash = source.rfind('/');
  return fmt::format("{}/__pycache__/{}.cpython-3{}.pyc", source.substr(0, slash),
                     source.substr(slash + 1, source.size() - slash - 4), python_minor);
}

/// As sys.path names it, so that co_filename is right without being fixed at import.
std::string shown_path(const std::string& path, int python_minor) {
  return fmt::format("/{}/lib/python3.{}/{}", kVenv, python_minor,
                     path.substr(std::string_view("opt/venv/lib/python3/").size()));
}

void find_sources(Compilation& work) {
  const std::vector<InstalledFile>& files = *work.job.wheel.files;
  std::set<std::string_view> paths;
  for (const InstalledFile& file : files) paths.insert(file.path);
  for (const InstalledFile& file : files) {
    if (!file.path.starts_with(kSitePackages) || !file.path.ends_with(".py")) continue;
    std::string pyc = pyc_path(file.path, work.job.python_minor);
    if (!paths.contains(pyc)) work.sources.push_back({&file, std::move(pyc)});
  }
  std::sort(work.sources.begin(), work.sources.end(),
            [](const ModuleSource& a, const ModuleSource& b) { return a.pyc < b.pyc; });
  std::uint64_t bytes = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < work.sources.size(); ++i) {
    const InstalledFile& file = *work.sources[i].file;
    bytes += file.member ? file.member->size_bytes : file.text.size();
    if (bytes < kBatchBytes && i + 1 < work.sources.size()) continue;
    work.batches.emplace_back(first, i + 1);
    first = i + 1;
    bytes = 0;
  }
  work.parts.resize(work.batches.size());
  work.left = work.batches.size();
}

void append(Bytes& to, ByteView bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void append_entry(Bytes& tar, const std::string& path, std::string_view content,
                  std::int64_t epoch) {
  TarEntry entry;
  entry.path = path;
  entry.size_bytes = content.size();
  entry.mtime = epoch;
  append(tar, tar_header(entry));
  append(tar, as_bytes(content));
  tar.resize(tar.size() + tar_padding(content.size()));
}

void compile_batch(Compilation& work, std::size_t batch, BytecodeCompiler& compiler) {
  const Fd fd = open_file(work.job.wheel.path);
  const auto [first, last] = work.batches[batch];
  std::vector<PythonSource> sources;
  for (std::size_t i = first; i < last; ++i) {
    const InstalledFile& file = *work.sources[i].file;
    sources.push_back({shown_path(file.path, work.job.python_minor),
                       file.member ? read_zip_member(fd.get(), *file.member) : file.text});
  }
  const std::vector<std::string> compiled = compiler.compile(sources);
  Bytes tar;
  std::set<std::string> folders;
  for (std::size_t i = first; i < last; ++i) {
    if (compiled[i - first].empty()) continue;
    const std::string& path = work.sources[i].pyc;
    append_entry(tar, path, compiled[i - first], work.job.epoch);
    folders.insert(path.substr(0, path.rfind('/')));
  }
  Part& part = work.parts[batch];
  part.tar_bytes = tar.size();
  for (ByteView rest = tar; !rest.empty();) {
    const ByteView chunk = rest.first(std::min(rest.size(), kChunkBytes));
    append(part.members, gzip_chunk_unread(chunk));
    rest = rest.subspan(chunk.size());
  }
  const std::lock_guard lock{work.mutex};
  work.folders.merge(folders);
}

void remember_segment(Store& store, const Digest& key, const Segment& segment) {
  nlohmann::json record{{"blob", nullptr},
                        {"size_bytes", segment.size_bytes},
                        {"tar_bytes", segment.tar_bytes},
                        {"folders", segment.folders}};
  if (segment.blob) record["blob"] = segment.blob->str();
  remember(store, key, kSegmentSchema, std::move(record));
}

Segment finish_segment(Compilation& work, Store& store) {
  Segment segment;
  segment.folders.assign(work.folders.begin(), work.folders.end());
  Store::Staged staged = store.stage();
  Sha256 hash;
  for (const Part& part : work.parts) {
    segment.tar_bytes += part.tar_bytes;
    hash.write(part.members);
    write_all(staged.fd(), part.members);
  }
  segment.size_bytes = hash.size_bytes();
  if (segment.size_bytes > 0) {
    segment.blob = hash.finish();
    staged.commit(*segment.blob);
  }
  remember_segment(store, work.job.key, segment);
  return segment;
}

Error damaged(std::string why) {
  return failure("damaged", "cached bytecode in the store is damaged")
      .because(std::move(why))
      .hint("run `mlenv store verify --repair`, then build again");
}

void add_segment(LayerWriter& writer, const Segment& segment, const Store& store) {
  const std::unique_ptr<Source> compressed = store.open(*segment.blob);
  std::uint64_t tar_bytes = 0;
  try {
    tar_bytes = writer.add_segment(*segment.blob, segment.size_bytes, *compressed);
  } catch (const Error& error) {
    if (error.code() != "bad-gzip") throw;
    throw damaged(error.frames().back());
  }
  if (tar_bytes != segment.tar_bytes) {
    throw damaged(
        fmt::format("it unpacks to {} bytes instead of {}", tar_bytes, segment.tar_bytes));
  }
}

}  // namespace

std::optional<Segment> find_segment(const Store& store, const Digest& key) {
  Segment segment;
  const bool known = recall(store, key, kSegmentSchema, [&](const nlohmann::json& record) {
    if (!record.at("blob").is_null())
      segment.blob = Digest::parse(record.at("blob").get<std::string>());
    segment.size_bytes = record.at("size_bytes").get<std::uint64_t>();
    segment.tar_bytes = record.at("tar_bytes").get<std::uint64_t>();
    segment.folders = record.at("folders").get<std::vector<std::string>>();
    return !segment.blob || store.has(*segment.blob);
  });
  if (!known) return std::nullopt;
  return segment;
}

void make_segment(const SegmentJob& job, const SegmentTools& tools,
                  std::function<void(Segment)> done) {
  auto work = std::make_shared<Compilation>(job, std::move(done));
  find_sources(*work);
  if (work->batches.empty()) return work->done(finish_segment(*work, tools.store));
  for (std::size_t batch = 0; batch < work->batches.size(); ++batch) {
    tools.group.spawn(tools.pool, [work, batch, tools] {
      while_doing("compiling `" + work->job.wheel.wheel.file + "`",
                  [&] { compile_batch(*work, batch, tools.compiler); });
      if (--work->left == 0) work->done(finish_segment(*work, tools.store));
    });
  }
}

bool has_own_layer(const Segment& segment) { return segment.size_bytes >= kOwnBytecodeLayerBytes; }

Layer make_bytecode_layer(const std::vector<const Segment*>& segments, std::string title,
                          std::int64_t epoch, Store& store, bool unpack) {
  StagedLayer staged{store, epoch, unpack};
  std::set<std::string> folders;
  for (const Segment* segment : segments) {
    folders.insert(segment->folders.begin(), segment->folders.end());
  }
  for (const std::string& folder : folders) staged.writer().add_folder(folder);
  for (const Segment* segment : segments) {
    if (segment->blob) add_segment(staged.writer(), *segment, store);
  }
  return staged.publish(std::move(title));
}

}  // namespace mlenv
