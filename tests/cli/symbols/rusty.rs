// SPDX-License-Identifier: MIT
// Rust functions, built once with legacy and once with v0 names (see alpha.cc).
#![crate_type = "cdylib"]
use std::os::raw::c_void;

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
}

static mut KEPT: *mut c_void = std::ptr::null_mut();

macro_rules! keep {
    ($pointer:expr) => {
        std::ptr::write_volatile(std::ptr::addr_of_mut!(crate::KEPT), $pointer)
    };
}

mod inner {
    #[inline(never)]
    pub fn in_module() {
        unsafe { keep!(crate::malloc(3001)) } // @ rusty::inner::in_module 3001
    }
}

struct Thing;

trait Allocates {
    fn allocate(&self);
}

impl Allocates for Thing {
    #[inline(never)]
    fn allocate(&self) {
        unsafe { keep!(malloc(3002)) } // @ <rusty::Thing as rusty::Allocates>::allocate 3002
    }
}

#[inline(always)]
fn inlined(n: usize) {
    unsafe { keep!(malloc(n)) } // @ rusty::inlined 3003
}

#[inline(never)]
fn around() {
    inlined(3003);
    unsafe { keep!(malloc(3004)) } // @ rusty::around 3004
}

#[no_mangle]
pub extern "C" fn rusty_all() {
    inner::in_module();
    Thing.allocate();
    around();
}
