import Foundation

/// Measures a real fleet of release executables that lie beside this one. `Tests/Benchmarks/README.md` says how it is called.
@main
struct Main {
    static func main() throws {
        let bench = try Bench(arguments: CommandLine.arguments, environment: ProcessInfo.processInfo.environment)
        try bench.run()
    }
}
