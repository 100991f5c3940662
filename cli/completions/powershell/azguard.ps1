Register-ArgumentCompleter -Native -CommandName azguard -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $line = $commandAst.ToString().PadRight($cursorPosition).Substring(0, $cursorPosition)
    $env:_AZGUARD_COMPLETE = 'powershell'
    $env:_AZGUARD_LINE = $line
    try {
        azguard 2>$null | ForEach-Object {
            $value, $meaning = $_ -split "`t", 2
            if (-not $meaning) { $meaning = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $meaning)
        }
    } finally {
        Remove-Item Env:_AZGUARD_COMPLETE, Env:_AZGUARD_LINE
    }
}
