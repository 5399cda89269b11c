// What solv::Pool is made of: Packages files, and the form of them that libsolv reads back fast.
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include <solv/repo_solv.h>
#include <solv/repo_write.h>
#include <solv/repodata.h>
#include <solv/solvversion.h>

#include "base/error.hpp"
#include "recipes/resolve/solv_state.hpp"

extern "C" {
#include <solv/repo_deb.h>
}

namespace mlenv::solv {
namespace {

using WriterHandle = Owned<repowriter_free>::of<Repowriter>;
void close_file(std::FILE* file) { (void)std::fclose(file); }  // memory: nothing can fail
using FileHandle = Owned<close_file>::of<std::FILE>;

/// Part of `cache_format`: to be raised when `add_index` stores something else.
constexpr int kPoolFormat = 2;

/// libsolv reads through FILE; fmemopen refuses an empty buffer.
FileHandle open_memory(std::string_view bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): opened for reading only
  FileHandle file{::fmemopen(const_cast<char*>(bytes.data()), bytes.size(), "r")};
  if (!file) throw os_error(errno, "cannot read {} bytes of a package index", bytes.size());
  return file;
}

int keep_in_cache(Repo* repo, Repokey* key, void* data) {
  switch (key->name) {
    case SOLVABLE_DESCRIPTION:
    case SOLVABLE_SUMMARY:
    case SOLVABLE_URL:
    case SOLVABLE_INSTALLSIZE:
    case SOLVABLE_SOURCENAME:
      return KEY_STORAGE_DROPPED;
    default:
      return repo_write_stdkeyfilter(repo, key, data);
  }
}

std::string cached_form(Repo* repo) {
  char* bytes = nullptr;
  std::size_t size = 0;
  FileHandle file{::open_memstream(&bytes, &size)};
  if (!file) throw os_error(errno, "cannot write a package index to memory");
  const WriterHandle writer{repowriter_create(repo)};
  repowriter_set_keyfilter(writer.get(), keep_in_cache, nullptr);
  const bool written = repowriter_write(writer.get(), file.get()) == 0;
  file.reset();  // sets bytes and size
  const Owned<std::free>::of<char> owned{bytes};
  if (!written) throw failure("index-invalid", "cannot store a package index");
  return {bytes, size};
}

}  // namespace

/// Stores what libsolv's reader left out or would lose, and drops what is of no use.
void Pool::State::complete(Repodata* data, Id id, const Facts& facts) const {
  Solvable* solvable = pool_id2solvable(pool.get(), id);
  solvable->obsoletes = solvable->recommends = solvable->suggests = 0;
  solvable->enhances = solvable->supplements = 0;
  for (const bool plain : {false, true}) {
    for (const DependencyId one : dependencies(solvable->requires, solvable->repo, plain)) {
      repodata_add_idarray(data, id, depends_key, raw(one));
    }
  }
  repodata_set_num(data, id, SOLVABLE_DOWNLOADSIZE, facts.size_bytes);
  if (facts.priority != Priority::optional) {
    repodata_set_num(data, id, priority_key, static_cast<unsigned long long>(facts.priority));
  }
  if (facts.essential) repodata_set_num(data, id, essential_key, 1);
  if (facts.guarded) repodata_set_num(data, id, guarded_key, 1);
}

Repo* Pool::State::add_repo(const Origin& origin) {
  Repo* repo = repo_create(pool.get(), "index");
  repo->priority = origin.priority;  // the solver, too, takes from the highest
  origins[repo] = origin;
  return repo;
}

std::string Pool::add_index(std::string_view text, const std::vector<Facts>& facts,
                            const Origin& origin) {
  ::Pool* pool = state_->pool.get();
  Repo* repo = state_->add_repo(origin);
  if (!text.empty()) {
    const FileHandle file = open_memory(text);
    if (repo_add_debpackages(repo, file.get(), 0) != 0) {
      throw failure("index-invalid", "cannot read a Packages file").because(pool_errstr(pool));
    }
  }
  Repodata* data = repo_add_repodata(repo, 0);
  auto fact = facts.begin();
  Id id = 0;
  Solvable* solvable = nullptr;
  FOR_REPO_SOLVABLES(repo, id, solvable) {
    if (fact == facts.end() || fact->name != pool_id2str(pool, solvable->name)) {
      throw failure("index-invalid", "a Packages file is malformed at the stanza of `{}`",
                    pool_id2str(pool, solvable->name));
    }
    state_->complete(data, id, *fact);
    ++fact;
  }
  if (fact != facts.end()) throw failure("index-invalid", "a Packages file is malformed");
  repodata_internalize(data);
  return cached_form(repo);
}

void Pool::add_installed(std::string_view text, const std::vector<Facts>& facts) {
  (void)add_index(text, facts, Origin{kInstalled, Origin{}.priority});
  for (const auto& [repo, origin] : state_->origins) {
    if (origin.number == kInstalled) pool_set_installed(state_->pool.get(), repo);
  }
}

bool Pool::add_cached(std::string_view bytes, const Origin& origin) {
  if (bytes.empty()) return false;
  Repo* repo = state_->add_repo(origin);
  const FileHandle file = open_memory(bytes);
  if (repo_add_solv(repo, file.get(), 0) == 0) return true;
  state_->origins.erase(repo);
  repo_free(repo, 1);
  return false;
}

std::string Pool::cache_format() {
  return fmt::format("libsolv-{}-{}-mlenv-{}", solv_version, solv_toolversion, kPoolFormat);
}

}  // namespace mlenv::solv
