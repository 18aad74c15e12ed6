// SPDX-License-Identifier: MIT
// Half of the functions that test_symbols.py expects to find by name and line: C++, in a shared library. A comment
// "@ NAME BYTES" says that this line, in the function NAME, allocates BYTES bytes each time the program runs; NAME* stands
// for any ending.
#include <cstdlib>

#define KEEP __attribute__((noinline))
static void *volatile kept;

namespace alpha {

KEEP void plain() { kept = malloc(1001); }  // @ alpha::plain() 1001

template <typename T, int N>
KEEP void templated() {
  kept = malloc(N * sizeof(T));  // @ void alpha::templated<char, 1002>() 1002 @ void alpha::templated<long, 129>() 1032
}

struct Widget {
  KEEP void method(int a) const { kept = malloc(1003 + a * 0); }  // @ alpha::Widget::method(int) const 1003
  KEEP static void fixed() { kept = malloc(1004); }               // @ alpha::Widget::fixed() 1004
  virtual KEEP void dispatched() { kept = malloc(1005); }         // @ alpha::Widget::dispatched() 1005
  virtual ~Widget() {}
};

struct Derived : Widget {
  KEEP void dispatched() override {
    kept = malloc(1006);  // @ alpha::Derived::dispatched() 1006
  }
};

KEEP int operator+(const Widget &, int n) {
  kept = malloc(1007);  // @ alpha::operator+(alpha::Widget const&, int) 1007
  return n;
}

namespace {
KEEP void hidden() { kept = malloc(1008); }  // @ alpha::(anonymous namespace)::hidden() 1008
}  // namespace

static KEEP void internal(const char *, unsigned long) {
  kept = malloc(1009);  // @ alpha::internal(char const*, unsigned long) 1009
}

static inline __attribute__((always_inline)) void inlined_leaf(int n) {
  kept = malloc(n);  // @ alpha::inlined_leaf* 1010
}

static inline __attribute__((always_inline)) void inlined_middle(int n) {
  inlined_leaf(n + 1);
}

KEEP void inlines() { inlined_middle(1009); }

KEEP void lambda() {
  auto f = [](int n) KEEP {
    kept = malloc(n);  // @ alpha::lambda()::* 1011
  };
  f(1011);
}

KEEP void creates() { kept = new char[1012]; }  // @ alpha::creates() 1012

template <typename F>
KEEP void calls(F f) {
  f();
  kept = malloc(1013);  // @ void alpha::calls<void (*)()>(void (*)()) 1013
}

KEEP void overloaded(int) { kept = malloc(1014); }     // @ alpha::overloaded(int) 1014
KEEP void overloaded(double) { kept = malloc(1015); }  // @ alpha::overloaded(double) 1015

void nothing() {}

}  // namespace alpha

extern "C" KEEP void alpha_all() {
  using namespace alpha;
  plain();
  templated<char, 1002>();
  templated<long, 129>();
  Widget w;
  Derived d;
  w.method(3);
  Widget::fixed();
  static_cast<Widget *>(&w)->dispatched();
  Widget *volatile v = &d;
  v->dispatched();
  (void)(w + 1);
  hidden();
  internal("x", 1);
  inlines();
  lambda();
  creates();
  calls(&nothing);
  overloaded(1);
  overloaded(1.0);
  kept = malloc(1016);  // @ alpha_all 1016
}
