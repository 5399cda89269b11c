#pragma once
// Who counts a program's processes gets a processor even where thousands of them want one.
namespace mlenv::sandbox {

enum class Urgency {
  none,    ///< as any process
  itself,  ///< before all others, its children as any
  kept,    ///< and its children so, too
};

/// Where the system lets us, which is for root; else nothing changes.
void set_urgent(Urgency urgency) noexcept;

}  // namespace mlenv::sandbox
