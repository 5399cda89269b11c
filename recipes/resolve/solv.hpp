#pragma once
// libsolv's pool of Debian packages and its solver, behind owned handles and ids of our own.
// Compiled as C++17, so this header keeps to C++17 and shows none of libsolv's types.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::solv {

enum class PackageId : int { none = 0 };  ///< one version of one package
enum class NameId : int { none = 0 };
enum class DependencyId : int { none = 0 };

/// Debian Policy 2.5.
enum class Priority : int { required = 1, important, standard, optional, extra };

/// What libsolv's own reader of Packages files leaves out, one for each stanza.
struct Facts {
  std::string_view name;
  std::uint64_t size_bytes = 0;
  Priority priority = Priority::optional;
  bool essential = false;
  bool guarded = false;  ///< `Protected: yes` or `Important: yes`
};

/// Where an index comes from.
struct Origin {
  int number = 0;      ///< the caller's own name for it
  int priority = 500;  ///< apt_preferences(5): candidates are those of the highest
};

struct Package {
  std::string name;
  std::string version;
  std::string architecture;
  std::string path;    ///< Filename
  std::string sha256;  ///< hex; empty when the index has none
  std::uint64_t size_bytes = 0;
};

/// What the solver is asked for: each of `install`; `favoured` where there is a choice.
struct Job {
  std::vector<DependencyId> install;
  std::vector<PackageId> exactly;  ///< these very versions
  std::vector<PackageId> favoured;
  std::vector<PackageId> never;  ///< stay out, or in where installed, whatever needs otherwise
};

/// One rule that stands in the way.
struct Obstacle {
  enum class Kind {
    missing,      ///< nothing provides `dependency`, which `source` needs (none: it was asked for)
    needs,        ///< `source` needs `dependency`
    conflicts,    ///< `source` conflicts with `target` (its `dependency`)
    one_version,  ///< `source` and `target` are versions of one package
    not_installable,  ///< `source` is of another architecture
    asked             ///< it was asked for
  };
  Kind kind = Kind::asked;
  PackageId source = PackageId::none;
  PackageId target = PackageId::none;
  DependencyId dependency = DependencyId::none;
};

struct Outcome {
  bool solved = false;
  std::vector<PackageId> packages;  ///< when solved: all that is installed then; ascending ids
  std::vector<Obstacle> obstacles;  ///< when not: those of the first problem, without repeats
};

class Pool {
 public:
  explicit Pool(const std::string& architecture);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  /// Adds a Packages file (its text) and returns what `add_cached` reads back much faster; `facts`
  /// are in the order of the stanzas. Recommends, Suggests, Enhances and descriptions are dropped.
  /// Throws `index-invalid`.
  std::string add_index(std::string_view text, const std::vector<Facts>& facts,
                        const Origin& origin = {});
  /// False, and nothing added, when `bytes` cannot be read; the caller checks them by digest first,
  /// as libsolv trusts what it reads.
  bool add_cached(std::string_view bytes, const Origin& origin = {});
  /// Names the format of `add_index`'s answer: libsolv's version and ours.
  static std::string cache_format();
  /// What is installed, as stanzas of an index: it stays installed, at its version or a newer one.
  /// At most once, before any other add: where versions are equal, the first one counts. Its
  /// origin's number is `kInstalled`. Throws `index-invalid`.
  void add_installed(std::string_view text, const std::vector<Facts>& facts);
  static constexpr int kInstalled = -1;
  bool is_installed(PackageId id) const { return origin(id).number == kInstalled; }
  /// To be called once after the last add and before any question.
  void seal();

  std::vector<PackageId> packages() const;
  /// Every version of a package, newest first.
  std::vector<PackageId> named(NameId name) const;
  /// none when no package or dependency mentions it.
  NameId find_name(std::string_view name) const;
  std::string_view text(NameId name) const;
  std::string text(DependencyId dependency) const;

  Package package(PackageId id) const;
  NameId name(PackageId id) const;
  std::string_view version(PackageId id) const;
  Priority priority(PackageId id) const;
  bool essential(PackageId id) const;
  bool guarded(PackageId id) const;
  Origin origin(PackageId id) const;

  /// Pre-Depends, then Depends, each in the record's order.
  std::vector<DependencyId> depends(PackageId id) const;
  /// Conflicts and Breaks.
  std::vector<DependencyId> conflicts(PackageId id) const;
  /// `a | b | c` → a, b, c; anything else is its own only alternative.
  std::vector<DependencyId> alternatives(DependencyId dependency) const;
  /// The name in a dependency without alternatives.
  NameId target(DependencyId dependency) const;
  /// Versions that satisfy it, as packages or through Provides; ascending ids.
  std::vector<PackageId> providers(DependencyId dependency) const;

  DependencyId dependency(NameId name) const;
  DependencyId dependency_equal(NameId name, std::string_view version) const;

  Outcome solve(const Job& job) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// deb-version(7) order: negative, zero, positive.
int compare_versions(std::string_view a, std::string_view b);

}  // namespace mlenv::solv
