//! Who may import whom among the kernel's modules: a module imports what stands in a line of [`LAYERS`] above its own,
//! or in its own room, and no two modules import each other in a circle. A room's `mod.rs` stands above its modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// From the ground to the roof. Modules of one line do not import each other.
const LAYERS: [&[&str]; 15] = [
    &["error"],
    &["copy", "flavour", "limits", "names", "shared"],
    &["text", "path", "tree", "rows"],
    &["tape"],
    &["codec"],
    &["json", "layout"],
    &["infer", "item"],
    &["shred"],
    &["values", "parquet"],
    &["convert"],
    &["read"],
    &["check"],
    &["ingest"],
    &["batch"],
    &["lib"],
];

/// Modules (`parquet::write::schema`) by their source.
type Sources = BTreeMap<String, String>;
type Imports = BTreeMap<String, BTreeSet<String>>;

fn sources() -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut found, mut folders) = (Sources::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let inside = path.strip_prefix(&root).unwrap().with_extension("");
                let parts: Vec<&str> = inside.iter().map(|p| p.to_str().unwrap()).filter(|p| *p != "mod").collect();
                found.insert(parts.join("::"), std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// The source without comments and without its tests, which may look at anything of their own file.
fn code(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    source.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The paths of a use tree: `a::{b, c::{self, D}}` is `a::b`, `a::c::self` and `a::c::D`.
fn paths(tree: &str, before: &str, out: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap().trim();
        return out.push(format!("{before}{path}"));
    };
    let before = format!("{before}{}", tree[..open].trim());
    let (mut depth, mut start) = (0, open + 1);
    for (at, c) in tree.char_indices().skip(open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1 || c == '}' && depth == 0) && !tree[start..at].trim().is_empty() {
            paths(&tree[start..at], &before, out);
        }
        if c == ',' && depth == 1 {
            start = at + 1;
        }
    }
}

/// Every path that the code names: those of its `use`s, and those in the middle of it.
fn named(code: &str) -> Vec<String> {
    let mut out = Vec::new();
    for rest in code.split("use ").skip(1) {
        if let Some((tree, _)) = rest.split_once(';') {
            paths(tree, "", &mut out);
        }
    }
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    // One that ends in colons is the begin of a use tree.
    let inside = code.split(|c| !word(c)).filter(|path| path.contains("::") && !path.ends_with("::"));
    out.extend(inside.map(str::to_string));
    out
}

fn imports(sources: &Sources) -> Imports {
    let mut found = Imports::new();
    for (module, source) in sources {
        let code = code(source);
        let here: Vec<&str> = module.split("::").collect();
        let mut to = BTreeSet::new();
        for path in named(&code) {
            let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
            let mut base: Vec<&str> = here.clone();
            match parts[0] {
                "crate" => base.clear(),
                "self" => {}
                "super" => {
                    while parts.len() > 1 && parts[1] == "super" {
                        parts.remove(0);
                        base.pop();
                    }
                    base.pop();
                }
                // Another crate's, or a module below this one.
                _ => parts.insert(0, "self"),
            }
            base.extend(&parts[1..]);
            let target = (1..=base.len()).rev().map(|n| base[..n].join("::")).find(|name| sources.contains_key(name));
            to.extend(target.filter(|name| name != module));
        }
        // A module is above those that it declares.
        let below = sources.keys().filter(|name| name.rsplit_once("::").is_some_and(|(above, _)| above == module));
        to.extend(below.cloned());
        found.insert(module.clone(), to);
    }
    found
}

fn room(module: &str) -> &str {
    module.split("::").next().unwrap()
}

/// What is wrong: imports upwards, circles, and modules without a line or lines without a module.
fn faults(layers: &[&[&str]], sources: &Sources) -> Vec<String> {
    let layer = |module: &str| layers.iter().position(|line| line.contains(&room(module)));
    let mut faults = Vec::new();
    for name in sources.keys().filter(|name| layer(name).is_none()) {
        faults.push(format!("{name} stands in no layer"));
    }
    for name in layers.iter().copied().flatten().filter(|name| !sources.contains_key(**name)) {
        faults.push(format!("{name} is a layer without a module"));
    }
    let imports = imports(sources);
    for (module, to) in &imports {
        for target in to.iter().filter(|target| room(target) != room(module) && layer(target) >= layer(module)) {
            faults.push(format!("{module} imports {target}, which is not below it"));
        }
    }
    // Whoever imports only what is taken away already is taken away; what is left at the end stands in circles, or above.
    let mut left = imports;
    loop {
        let free: Vec<String> = left.iter().filter(|(_, to)| to.is_empty()).map(|(name, _)| name.clone()).collect();
        if free.is_empty() {
            break;
        }
        left.retain(|name, _| !free.contains(name));
        left.values_mut().for_each(|to| to.retain(|name| !free.contains(name)));
    }
    // From anywhere among them, the way down ends in a circle.
    if let Some(mut at) = left.keys().next() {
        let mut way = vec![at];
        loop {
            at = left[at].iter().next().unwrap();
            if let Some(first) = way.iter().position(|seen| *seen == at) {
                faults.push(format!("in a circle: {:?}", &way[first..]));
                break;
            }
            way.push(at);
        }
    }
    faults
}

#[test]
fn modules_import_downwards_and_in_no_circle() {
    let sources = sources();
    assert!(sources.len() > 50, "{} modules", sources.len());
    assert!(imports(&sources).values().map(BTreeSet::len).sum::<usize>() > 200);
    assert_eq!(faults(&LAYERS, &sources), Vec::<String>::new());
}

#[test]
fn no_file_is_longer_than_a_reader_takes() {
    let long: Vec<(String, usize)> =
        sources().into_iter().map(|(name, source)| (name, source.lines().count())).filter(|(_, n)| *n > 500).collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn what_is_forbidden_is_found_however_it_is_spelled() {
    let layers: [&[&str]; 3] = [&["ground", "other"], &["room"], &["lib"]];
    let check = |files: &[(&str, &str)]| {
        let mut all = Sources::from([("lib".into(), String::new())]);
        for name in ["ground", "other", "room", "room::a", "room::b"] {
            all.insert(name.into(), String::new());
        }
        all.extend(files.iter().map(|(name, source)| (name.to_string(), source.to_string())));
        faults(&layers, &all)
    };
    assert!(check(&[("room::a", "use crate::ground::X;\nuse super::b::Y;\n// use crate::room;\n")]).is_empty());
    assert!(check(&[("room", "mod a;\nmod b;\npub use a::X;\nuse crate::other;\n")]).is_empty());
    for source in [
        "use crate::room::X;",
        "use crate::room;",
        "use crate::{error, room::{self, a::{B, C}}};",
        "pub use crate::room::a::{\n    B,\n    C,\n};",
        "pub(crate) use crate::room::a as z;",
        "fn f() { crate::room::a::g() }",
        "fn f(x: &crate::room::X) {}",
        "fn f() {\n    use crate::room::a::g;\n}",
        "use super::room::X;",
        "use crate::other::X;",
    ] {
        let found = check(&[("ground", source)]);
        assert!(found.iter().any(|fault| fault.contains("not below")), "{source}: {found:?}");
    }
    for (a, b) in [
        ("use crate::room::b::X;", "use crate::room::a::Y;"),
        ("use super::b;", "fn f() { super::a::f() }"),
        ("use super::X;", ""),
        ("fn f() { crate::room::f() }", ""),
    ] {
        let found = check(&[("room::a", a), ("room::b", b)]);
        assert!(found.iter().any(|fault| fault.contains("circle")), "{a} {b}: {found:?}");
    }
    assert!(check(&[("new", "")]).iter().any(|fault| fault.contains("no layer")));
    assert!(faults(&[&["gone"]], &Sources::new()).iter().any(|fault| fault.contains("without a module")));
}
