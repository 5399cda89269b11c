#include "runner/node/code_tree.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/tar.hpp"
#include "images/tree_writer.hpp"
#include "runner/job/private_blob.hpp"

namespace mlenv::job {
namespace {

Error bad_code(const TarEntry& entry, std::string_view why) {
  return failure("bad-code", "the archive of the job's code cannot be unpacked")
      .because(fmt::format("`{}` {}", printable(entry.path), why));
}

bool leads_out(const TarEntry& entry) {
  const fs::path target = entry.link;
  if (target.is_absolute()) return true;
  const fs::path end = (fs::path(entry.path).parent_path() / target).lexically_normal();
  return end.begin() != end.end() && *end.begin() == "..";
}

void copy_into(TreeWriter& tree, Source& data) {
  constexpr std::size_t kBuffer = std::size_t{256} << 10;
  Bytes buffer(kBuffer);
  while (const std::size_t count = data.read(buffer)) tree.write(ByteView(buffer).first(count));
}

/// Not TreeWriter::add, to which some names mean something.
void add_entry(TreeWriter& tree, const TarEntry& entry, Source& data) {
  const Attributes attributes{entry.mode, entry.uid, entry.gid, entry.mtime};
  switch (entry.type) {
    case TarEntry::Type::folder:
      return tree.add_folder(entry.path, attributes);
    case TarEntry::Type::file:
      tree.begin_file(entry.path, attributes, entry.size_bytes);
      copy_into(tree, data);
      return tree.end_file();
    case TarEntry::Type::symlink:
      if (leads_out(entry)) throw bad_code(entry, "is a link out of the code's folder");
      return tree.add_symlink(entry.path, entry.link, attributes);
    default:
      throw bad_code(entry, "is neither a file nor a folder nor a link");
  }
}

/// Hashes what is read through it.
class HashedSource final : public Source {
 public:
  explicit HashedSource(Source& from) : from_(from) {}
  std::size_t read(ByteSpan out) override {
    const std::size_t count = from_.read(out);
    hash_.write(out.first(count));
    return count;
  }
  /// Of all of it.
  Digest finish() {
    constexpr std::size_t kBuffer = std::size_t{64} << 10;
    Bytes rest(kBuffer);
    while (read(rest) > 0) {
    }
    return hash_.finish();
  }

 private:
  Source& from_;
  Sha256 hash_;
};

}  // namespace

std::string unpack_code(const Store& store, const Digest& archive, const fs::path& folder) {
  keep_private(store, archive);
  make_folders(folder);
  const std::unique_ptr<Source> blob = store.open(archive);
  HashedSource hashed{*blob};
  TreeWriter tree{folder};
  read_tar(hashed, [&](const TarEntry& entry, Source& data) { add_entry(tree, entry, data); });
  tree.finish();
  const Digest found = hashed.finish();
  if (found == archive) return found.str();
  throw failure("damaged", "the archive `{}` of the job's code is damaged", archive.str())
      .because(fmt::format("it hashes to `{}`", found.str()));
}

}  // namespace mlenv::job
