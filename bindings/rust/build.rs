// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Links libbarline. BARLINE_LIB_DIR names its folder if that is not one of the system's.

fn main() {
    println!("cargo:rerun-if-env-changed=BARLINE_LIB_DIR");
    if let Ok(dir) = std::env::var("BARLINE_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", dir);
    }
    println!("cargo:rustc-link-lib=barline");
}
