import LockstepCommands

@main
struct Main {
    static func main() async {
        await Lockstep.runAndExit()
    }
}
