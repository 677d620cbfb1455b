//! Inputs that reach something new are kept and changed further, those that a run before kept too:
//! `mica-fuzz CORPUS SECONDS [TARGET]`. What fails is kept as `failed-…` in the corpus, and fails again by
//! `mica-fuzz CORPUS 0 TARGET < INPUT`.

mod coverage;
#[path = "../../kernel/tests/common/memory.rs"]
mod memory;
#[path = "../../kernel/tests/common/random.rs"]
#[allow(dead_code)]
mod random;
mod targets;
#[path = "../../kernel/tests/common/thrift.rs"]
#[allow(dead_code)]
mod thrift;

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use coverage::Seen;
use random::Random;
use targets::TARGETS;

/// Longer than this is a hang.
const PATIENCE: Duration = Duration::from_secs(20);
/// Inputs stay small: what they can do to a format does not take length.
const LONGEST: usize = 64 << 10;

/// What panicked in our own sources: the reader turns panics of libraries into errors.
static OURS: Mutex<Option<String>> = Mutex::new(None);
/// The run at hand: when it began, and its input.
static RUNNING: Mutex<Option<(Instant, String, Vec<u8>)>> = Mutex::new(None);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, corpus, seconds, rest @ ..] = &arguments[..] else { panic!("mica-fuzz CORPUS SECONDS [TARGET]") };
    let (corpus, seconds) = (PathBuf::from(corpus), seconds.parse().expect("seconds"));
    watch(&corpus);
    if seconds == 0 {
        let mut input = Vec::new();
        std::io::stdin().read_to_end(&mut input).expect("an input");
        let (name, target, _) =
            TARGETS.into_iter().find(|(name, ..)| Some(*name) == rest.first().map(String::as_str)).expect("a target");
        println!("{:?}", run(&corpus, name, target, &input));
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64;
    let mut random = Random::new(now);
    let mut pools: Vec<Vec<Vec<u8>>> =
        TARGETS.iter().map(|(name, _, seeds)| [seeds(), kept(&corpus.join(name))].concat()).collect();
    let mut seen = Seen::default();
    for ((name, target, _), pool) in TARGETS.iter().zip(&pools) {
        for input in pool {
            let _ = run(&corpus, name, *target, input);
            seen.take();
        }
    }
    assert!(seen.edges().0 > 1000, "nothing is counted: the program was built without instrumentation");
    println!("begins with {} inputs and {:?} edges", pools.iter().map(Vec::len).sum::<usize>(), seen.edges());
    let (began, mut runs, mut told) = (Instant::now(), 0u64, Instant::now());
    while began.elapsed() < Duration::from_secs(seconds) {
        let at = random.next(TARGETS.len());
        let (name, target, _) = TARGETS[at];
        if rest.first().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let input = changed(&pools[at], name, &mut random);
        let _ = run(&corpus, name, target, &input);
        runs += 1;
        if seen.take() {
            let folder = corpus.join(name);
            std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(folder.join(format!("{:016x}", hash(&input))), &input))
                .expect("a place for the corpus");
            pools[at].push(input);
        }
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            let kept: Vec<usize> = pools.iter().map(Vec::len).collect();
            println!("{runs} runs, kept {kept:?}, edges {:?}", seen.edges());
        }
    }
    println!(
        "{runs} runs, {} inputs, edges {:?}, no panic of ours",
        pools.iter().map(Vec::len).sum::<usize>(),
        seen.edges()
    );
}

/// An input of the pool with something changed: bytes, the structure of a file, or a piece of another input.
fn changed(pool: &[Vec<u8>], name: &str, random: &mut Random) -> Vec<u8> {
    // The newest are the most promising.
    let pick = |random: &mut Random| {
        if random.next(2) == 0 { pool.len() - 1 - random.next(pool.len().min(16)) } else { random.next(pool.len()) }
    };
    let mut input = pool[pick(random)].clone();
    match random.next(4) {
        0 => {
            let other = &pool[pick(random)];
            let (from, to) = (random.next(other.len() + 1), random.next(input.len() + 1));
            input.truncate(to);
            input.extend_from_slice(&other[from..]);
        }
        1 if name == "file" => match catch_unwind(AssertUnwindSafe(|| thrift::File::of(&input))) {
            Ok(Some(mut file)) => {
                if catch_unwind(AssertUnwindSafe(|| file.damage(random))).is_ok() {
                    input = file.bytes();
                }
            }
            _ => random.damage(&mut input),
        },
        2 if name == "file" && !input.is_empty() => random.damage_file(&mut input),
        _ => random.damage(&mut input),
    }
    input.truncate(LONGEST);
    input
}

/// One input; ends the program where something of ours panics.
fn run(
    corpus: &Path,
    name: &str,
    target: fn(&[u8]) -> mica_kernel::Result<()>,
    input: &[u8],
) -> mica_kernel::Result<()> {
    *RUNNING.lock().unwrap() = Some((Instant::now(), name.into(), input.to_vec()));
    let done = catch_unwind(AssertUnwindSafe(|| target(input)));
    let (began, ..) = RUNNING.lock().unwrap().take().expect("the run");
    let why = match (OURS.lock().unwrap().take(), began.elapsed() > PATIENCE) {
        (Some(ours), _) => ours,
        (None, true) => format!("took {:?}", began.elapsed()),
        (None, false) => return done.unwrap_or(Ok(())),
    };
    failed(corpus, name, input, &why)
}

fn failed(corpus: &Path, name: &str, input: &[u8], why: &str) -> ! {
    let path = corpus.join(format!("failed-{name}-{:016x}", hash(input)));
    let _ = std::fs::create_dir_all(corpus).and_then(|()| std::fs::write(&path, input));
    eprintln!("{name} failed: {why}\nits input is {}", path.display());
    std::process::exit(1);
}

/// Notes panics of ours, and ends the program where a run does not.
fn watch(corpus: &Path) {
    std::panic::set_hook(Box::new(|info| {
        if let Some(place) = info.location().filter(|place| place.file().contains("kernel/src")) {
            *OURS.lock().unwrap() = Some(format!("{place}: {info}"));
        }
    }));
    let corpus = corpus.to_path_buf();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let running = RUNNING.lock().unwrap().clone();
            if let Some((began, name, input)) = running
                && began.elapsed() > PATIENCE
            {
                failed(&corpus, &name, &input, "does not end");
            }
        }
    });
}

/// What earlier runs kept.
fn kept(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| std::fs::read(entry.path()).ok()).collect()
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
