#include "builder/bytecode/segments.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

#include "base/deflate.hpp"
#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/json.hpp"
#include "base/tar.hpp"
#include "builder/layer_writer.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSchema = "mlenv.bytecode/1";
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;         // of source
constexpr std::uint64_t kOwnLayerBytes = std::uint64_t{2} << 20;  // compressed

struct Pyc {
  std::string path;
  std::string bytes;
};

/// State of one wheel's compilation, shared by its batches.
struct Compilation {
  Compilation(SegmentJob what, std::function<void(Segment)> then)
      : job(std::move(what)), done(std::move(then)) {}
  SegmentJob job;
  std::vector<InstalledFile> sources;
  std::vector<std::pair<std::size_t, std::size_t>> batches;  // [first, last) of sources
  std::vector<std::vector<Pyc>> results;                     // one list a batch
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
  const Fd fd = open_file(work.job.path);
  std::vector<InstalledFile> files = installed_files(fd.get(), work.job.wheel);
  std::set<std::string> paths;
  for (const InstalledFile& file : files) paths.insert(file.path);
  for (InstalledFile& file : files) {
    const bool is_source = file.path.starts_with(kSitePackages) && file.path.ends_with(".py");
    if (!is_source || paths.contains(pyc_path(file.path, work.job.python_minor))) continue;
    work.sources.push_back(std::move(file));
  }
  std::size_t bytes = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < work.sources.size(); ++i) {
    const InstalledFile& file = work.sources[i];
    bytes += file.member ? static_cast<std::size_t>(file.member->size_bytes) : file.text.size();
    if (bytes < kBatchBytes && i + 1 < work.sources.size()) continue;
    work.batches.emplace_back(first, i + 1);
    first = i + 1;
    bytes = 0;
  }
  work.results.resize(work.batches.size());
  work.left = work.batches.size();
}

void compile_batch(Compilation& work, std::size_t batch, BytecodeCompiler& compiler) {
  const Fd fd = open_file(work.job.path);
  const auto [first, last] = work.batches[batch];
  std::vector<PythonSource> sources;
  for (std::size_t i = first; i < last; ++i) {
    const InstalledFile& file = work.sources[i];
    sources.push_back({shown_path(file.path, work.job.python_minor),
                       file.member ? read_zip_member(fd.get(), *file.member) : file.text});
  }
  std::vector<std::string> compiled = compiler.compile(sources);
  for (std::size_t i = first; i < last; ++i) {
    std::string& bytes = compiled[i - first];
    if (bytes.empty()) continue;
    work.results[batch].push_back(
        {pyc_path(work.sources[i].path, work.job.python_minor), std::move(bytes)});
  }
}

void append(Bytes& to, ByteView bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

Bytes segment_tar(Compilation& work, std::vector<std::string>& folders) {
  std::vector<Pyc> all;
  for (std::vector<Pyc>& result : work.results) {
    std::move(result.begin(), result.end(), std::back_inserter(all));
    result.clear();
  }
  std::sort(all.begin(), all.end(), [](const Pyc& a, const Pyc& b) { return a.path < b.path; });
  Bytes tar;
  std::set<std::string> distinct;
  for (Pyc& pyc : all) {
    TarEntry entry;
    entry.path = pyc.path;
    entry.size_bytes = pyc.bytes.size();
    entry.mtime = work.job.epoch;
    append(tar, tar_header(entry));
    append(tar, as_bytes(pyc.bytes));
    append(tar, Bytes(tar_padding(pyc.bytes.size())));
    distinct.insert(pyc.path.substr(0, pyc.path.rfind('/')));
    pyc.bytes = {};
  }
  folders.assign(distinct.begin(), distinct.end());
  return tar;
}

void remember_segment(Store& store, const Digest& key, const Segment& segment) {
  nlohmann::json value{{"schema", kSchema},
                       {"blob", nullptr},
                       {"size_bytes", segment.size_bytes},
                       {"tar_bytes", segment.tar_bytes},
                       {"folders", segment.folders}};
  if (segment.blob) value["blob"] = segment.blob->str();
  store.put_key(key, canonical(value));
}

/// Compresses the tar into the store.
void store_segment(const Bytes& tar, Store& store, Segment& segment) {
  Store::Staged staged = store.stage();
  Sha256 hash;
  for (ByteView rest = tar; !rest.empty();) {
    const ByteView chunk = rest.first(std::min(rest.size(), kChunkBytes));
    const Bytes member = gzip_chunk(chunk);
    hash.write(member);
    write_all(staged.fd(), member);
    rest = rest.subspan(chunk.size());
  }
  segment.size_bytes = hash.size_bytes();
  const Digest digest = hash.finish();
  staged.commit(digest);
  segment.blob = digest;
}

Segment finish_segment(Compilation& work, Store& store) {
  Segment segment;
  const Bytes tar = segment_tar(work, segment.folders);
  segment.tar_bytes = tar.size();
  if (!tar.empty()) store_segment(tar, store, segment);
  remember_segment(store, work.job.key, segment);
  return segment;
}

void add_segment(LayerWriter& writer, const Segment& segment, const Store& store) {
  if (!segment.blob) return;
  StringSink tar;
  const std::unique_ptr<Source> blob = store.open(*segment.blob);
  gunzip(*blob, tar);
  if (tar.text.size() != segment.tar_bytes) {
    throw failure("damaged", "cached bytecode in the store is damaged")
        .hint("run `mlenv store verify --repair`, then build again");
  }
  const std::unique_ptr<Source> compressed = store.open(*segment.blob);
  MemorySource tar_source{as_bytes(tar.text)};
  writer.add_segment(*segment.blob, segment.size_bytes, *compressed, tar_source);
}

Layer make_layer(const std::vector<const Segment*>& segments, std::string title, std::int64_t epoch,
                 Store& store) {
  LayerWriter writer{nullptr, epoch};
  std::set<std::string> folders;
  for (const Segment* segment : segments) {
    folders.insert(segment->folders.begin(), segment->folders.end());
  }
  for (const std::string& folder : folders) writer.add_folder(folder);
  for (const Segment* segment : segments) add_segment(writer, *segment, store);
  MadeLayer made = writer.finish(std::move(title));
  store.put_spliced(made.layer.blob.digest, made.layer.blob.size_bytes, made.spliced);
  return std::move(made.layer);
}

}  // namespace

std::optional<Segment> find_segment(const Store& store, const Digest& key) {
  const std::optional<std::string> text = store.find_key(key);
  if (!text) return std::nullopt;
  try {
    const nlohmann::json value = parse_json(*text, "a segment's record");
    if (value.at("schema") != kSchema) return std::nullopt;
    Segment segment;
    if (!value.at("blob").is_null())
      segment.blob = Digest::parse(value.at("blob").get<std::string>());
    segment.size_bytes = value.at("size_bytes").get<std::uint64_t>();
    segment.tar_bytes = value.at("tar_bytes").get<std::uint64_t>();
    segment.folders = value.at("folders").get<std::vector<std::string>>();
    if (segment.blob && !store.has(*segment.blob)) return std::nullopt;
    return segment;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // another version's record: made again
  } catch (const Error&) {
    return std::nullopt;
  }
}

void make_segment(const SegmentJob& job, const SegmentTools& tools,
                  std::function<void(Segment)> done) {
  auto work = std::make_shared<Compilation>(job, std::move(done));
  find_sources(*work);
  if (work->batches.empty()) return work->done(finish_segment(*work, tools.store));
  for (std::size_t batch = 0; batch < work->batches.size(); ++batch) {
    tools.group.spawn(tools.pool, [work, batch, tools] {
      while_doing("compiling `" + work->job.wheel.file + "`",
                  [&] { compile_batch(*work, batch, tools.compiler); });
      if (--work->left == 0) work->done(finish_segment(*work, tools.store));
    });
  }
}

std::vector<Layer> make_bytecode_layers(const std::vector<Segment>& segments,
                                        const std::vector<std::string>& names, std::int64_t epoch,
                                        Store& store) {
  std::vector<Layer> layers;
  std::vector<const Segment*> pool;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    if (!segment.blob) continue;
    if (segment.size_bytes < kOwnLayerBytes) {
      pool.push_back(&segment);
    } else {
      layers.push_back(make_layer({&segment}, "bytecode of " + names[i], epoch, store));
    }
  }
  if (!pool.empty()) layers.push_back(make_layer(pool, "bytecode", epoch, store));
  return layers;
}

}  // namespace mlenv
